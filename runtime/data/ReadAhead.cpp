//===- ReadAhead.cpp - Reads a rank's samples ahead of time ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ReadAhead.h"

#include <algorithm>
#include <system_error>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

uint64_t chimera::runtime::ringBytesOf(const PlannedLoad &load) {
  constexpr uint64_t kAlignment = 64;
  return (load.bytes + kAlignment - 1) / kAlignment * kAlignment;
}

ReadAhead::ReadAhead(DataSource &source, uint64_t steps, uint64_t ringBytes)
    : source(source), steps(steps), ringBytes(ringBytes),
      ring(std::make_unique_for_overwrite<std::byte[]>(ringBytes)) {}

ReadAhead::~ReadAhead() { stop(); }

void ReadAhead::stop() {
  {
    std::lock_guard lock(mutex);
    isStopped = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void ReadAhead::begin(uint64_t firstStep, Plan plan) {
  stop();
  items.clear();
  end = used = 0;
  reached = firstStep;
  isStopped = isFinished = false;
  try {
    thread = std::thread([this, plan = std::move(plan)] { run(plan); });
  } catch (const std::system_error &) {
    isFinished = true;
  }
}

void ReadAhead::reach(uint64_t step) {
  {
    std::lock_guard lock(mutex);
    reached = step;
    if (!threadWaits)
      return;
  }
  changed.notify_all();
}

void ReadAhead::run(const Plan &plan) {
  for (uint64_t number = 0;; ++number) {
    const std::optional<Section> section = plan(number);
    if (!section || !read(*section))
      break;
  }
  {
    std::lock_guard lock(mutex);
    isFinished = true;
  }
  changed.notify_all();
}

/// Reads a section. Returns false if the thread must end.
bool ReadAhead::read(const Section &section) {
  std::unique_lock lock(mutex);
  const auto waitUntil = [&](const auto &condition) {
    threadWaits = true;
    changed.wait(lock, [&] { return isStopped || condition(); });
    threadWaits = false;
    return !isStopped;
  };
  if (!waitUntil([&] { return section.step <= reached + steps; }))
    return false;
  for (const PlannedLoad &load : section.loads) {
    if (ringBytesOf(load) > ringBytes)
      return false;
    std::optional<uint64_t> offset;
    if (!waitUntil([&] {
          offset = findSpace(ringBytesOf(load));
          return offset.has_value();
        }))
      return false;
    Item &item = items.emplace_back(Item{load, *offset});
    end = *offset + ringBytesOf(load);
    used += ringBytesOf(load);
    lock.unlock();
    std::exception_ptr error;
    try {
      source.load(load.kind, load.microBatch,
                  {ring.get() + *offset, load.bytes});
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    item.error = error;
    item.isReady = true;
    if (rankWaits)
      changed.notify_all();
    if (error)
      return false;
  }
  if (isStopped)
    return false;
  lock.unlock();
  try {
    if (section.afterLoads)
      section.afterLoads();
  } catch (...) {
    // The rank calls the same function, and then throws this exception.
  }
  return true;
}

/// The offset of free space of this size, after the newest item or at the begin
/// of the ring. None if there is too little.
std::optional<uint64_t> ReadAhead::findSpace(uint64_t bytes) {
  if (items.empty())
    end = 0;
  const uint64_t begin = items.empty() ? ringBytes : items.front().offset;
  const bool isWrapped = end <= begin;
  if (end + bytes <= (isWrapped ? begin : ringBytes))
    return end;
  if (!isWrapped && bytes <= begin)
    return 0;
  return std::nullopt;
}

void ReadAhead::dropFirst() {
  used -= ringBytesOf(items.front().load);
  items.pop_front();
}

void ReadAhead::load(program::ValueKind kind, MicroBatch microBatch,
                     Bytes output) {
  std::unique_lock lock(mutex);
  const auto hasFirst = [&] { return !items.empty() && items.front().isReady; };
  if (!hasFirst() && !isStopped && !isFinished) {
    rankWaits = true;
    changed.wait(lock, [&] { return isFinished || hasFirst(); });
    rankWaits = false;
  }
  const auto isAskedFor = [&](const PlannedLoad &load) {
    return load.kind == kind && load.bytes == output.size() &&
           load.microBatch.step == microBatch.step &&
           load.microBatch.index == microBatch.index &&
           load.microBatch.part == microBatch.part &&
           load.microBatch.parts == microBatch.parts;
  };
  if (isStopped || !hasFirst() || !isAskedFor(items.front().load)) {
    isStopped = true; // the rank does not follow the plan
    lock.unlock();
    changed.notify_all();
    return source.load(kind, microBatch, output);
  }
  const Item first = items.front(); // the thread does not touch it now
  lock.unlock();
  if (first.error)
    std::rethrow_exception(first.error);
  std::copy_n(ring.get() + first.offset, output.size(), output.data());
  lock.lock();
  dropFirst();
  // Wake the thread once for many loads.
  const bool wakes = threadWaits && used <= ringBytes / 2;
  lock.unlock();
  if (wakes)
    changed.notify_all();
}
