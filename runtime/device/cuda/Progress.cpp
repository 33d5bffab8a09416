//===- Progress.cpp - Reports the progress of a GPU -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Progress.h"

#include "runtime/system/Deadline.h"

using namespace chimera::runtime;
using namespace chimera::runtime::cuda;

namespace {
constexpr std::chrono::milliseconds kBetweenLooks(5);
}

Progress::Progress(Device::Listener given,
                   std::function<bool(const Event &)> isDone)
    : listener(std::move(given)), isDone(std::move(isDone)),
      thread([this] { look(); }) {}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

void Progress::add(uint64_t step, uint32_t instruction, Event event) {
  bool isFirst;
  {
    std::lock_guard lock(mutex);
    isFirst = points.empty();
    points.push_back({step, instruction, std::move(event)});
  }
  if (isFirst)
    changed.notify_all();
}

void Progress::look() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return ends || !points.empty(); });
    if (ends || !lookAt(points.front(), lock))
      return;
  }
}

/// Reports the instruction of `point`, the first point, and waits until this
/// point has passed. Returns false if the thread must end: after a failure, or
/// when this object is destroyed.
bool Progress::lookAt(Point point, std::unique_lock<std::mutex> &lock) {
  lock.unlock();
  listener.onInstruction(point.step, point.instruction);
  Deadline deadline(listener.timeout);
  std::string fault;
  try {
    while (!isDone(point.event)) {
      lock.lock();
      if (changed.wait_for(lock, kBetweenLooks, [&] { return ends; }))
        return false;
      lock.unlock();
      if (deadline.passed()) {
        fault =
            timeoutMessage(listener.timeout, "the GPU to end an instruction");
        break;
      }
    }
  } catch (const std::exception &error) {
    fault = error.what();
  }
  if (!fault.empty())
    listener.onFailure(fault);
  lock.lock();
  if (!fault.empty())
    return false;
  points.pop_front();
  if (points.empty())
    listener.onIdle();
  return true;
}
