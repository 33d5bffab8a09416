//===- MeasuredQueue.cpp - Times at a rank's queue ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MeasuredQueue.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <thread>

using namespace chimera::runtime;

namespace {
/// The duration of the work before a measured operation. It is longer than a
/// host takes to post a sum over NCCL (about 0.1 ms), and much shorter than a
/// round of messages.
constexpr int64_t kWorkNanoseconds = 500'000;
constexpr uint64_t kMostBytes = 64 << 20, kFewestBytes = 4096;
} // namespace

MeasuredQueue::MeasuredQueue(Device &device, std::chrono::milliseconds timeout)
    : device(device), atOnce(device.isSynchronous()), timeout(timeout),
      queue(device.makeQueue("measured")) {
  if (atOnce)
    return;
  zeroed = device.allocate(kMostBytes);
  work = {zeroed.get(), kMostBytes};
  queue->zero(work); // the first call may load code
  const Event begin = queue->recordTime();
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes; ++i)
    queue->zero(work);
  const Event end = queue->recordTime();
  waitFor(end);
  // Limit the work to 100 fills of 64 MiB. Only a GPU that writes more than
  // about 13 TB/s would need more.
  const int64_t took = std::max(kWorkNanoseconds / 100,
                                device.nanosecondsBetween(begin, end) / kTimes);
  workCount = static_cast<uint32_t>((kWorkNanoseconds + took - 1) / took);
  if (took > kWorkNanoseconds)
    work = work.first(std::max(
        kFewestBytes, static_cast<uint64_t>(kMostBytes * kWorkNanoseconds /
                                            static_cast<uint64_t>(took))));
}

Block MeasuredQueue::zeros(uint64_t bytes) {
  Block block = device.allocate(bytes);
  queue->zero({block.get(), bytes});
  timeOf(recordPoint());
  return block;
}

Moment MeasuredQueue::record() {
  return {.event = queue->record(), .byHost = steadyNanoseconds()};
}

void MeasuredQueue::putWork() {
  for (uint32_t i = 0; i < workCount; ++i)
    queue->zero(work);
}

int64_t MeasuredQueue::waitFor(const Event &event) {
  // Poll the event, because Device::waitFor sleeps and would be late by tens of
  // microseconds.
  Deadline deadline(timeout);
  while (!device.isDone(event)) {
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut,
                      timeoutMessage(timeout, "the rank's device"));
    std::this_thread::yield();
  }
  return steadyNanoseconds();
}
