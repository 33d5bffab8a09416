//===- ReadAhead.cpp - Reads a rank's samples ahead of time ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ReadAhead.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

void chimera::runtime::loadPieces(DataSource &source, const PlannedLoad &load,
                                  Bytes output) {
  const uint64_t bytes = load.bytes / load.pieces.size();
  for (const MicroBatch &piece : load.pieces) {
    source.load(load.kind, piece, output.first(bytes));
    output = output.subspan(bytes);
  }
}

ReadAhead::ReadAhead(DataSource &source, uint64_t steps, uint64_t maxBytes,
                     uint64_t alignment)
    : source(source), steps(steps), maxBytes(maxBytes), alignment(alignment) {}

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
  for (; !items.empty(); items.pop_front())
    giveBack(items.front().load, std::move(items.front().block));
  itemBytes = 0;
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
    if (sizeOf(load) > maxBytes)
      return false;
    std::optional<Block> block;
    try {
      if (!waitUntil([&] { return (block = findBlock(load)).has_value(); }))
        return false;
    } catch (const std::bad_alloc &) {
      return false; // the rank has memory of its own for the load
    }
    Item &item = items.emplace_back(Item{load, std::move(*block)});
    itemBytes += sizeOf(load);
    lock.unlock();
    std::exception_ptr error;
    try {
      loadPieces(source, load, {item.block.get(), load.bytes});
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

/// The bytes of memory of a load.
uint64_t ReadAhead::sizeOf(const PlannedLoad &load) const {
  return blockBytes(load.bytes, alignment);
}

/// An unused block for a load, or a new one. None if that would need too much
/// memory, because too many blocks are in use.
std::optional<Block> ReadAhead::findBlock(const PlannedLoad &load) {
  const uint64_t size = sizeOf(load);
  if (auto block = unused.extract(size))
    return std::move(block.mapped());
  while (allocated + size > maxBytes && !unused.empty()) {
    allocated -= unused.begin()->first;
    unused.erase(unused.begin());
  }
  if (allocated + size > maxBytes)
    return std::nullopt;
  Block block = makeBlock(load.bytes, alignment);
  allocated += size;
  return block;
}

/// The block of a load that is next in the plan, after it has been read.
/// Otherwise none, and nothing more is read ahead.
std::optional<Block> ReadAhead::take(const PlannedLoad &load) {
  std::unique_lock lock(mutex);
  const auto hasFirst = [&] { return !items.empty() && items.front().isReady; };
  if (!hasFirst() && !isStopped && !isFinished) {
    rankWaits = true;
    changed.wait(lock, [&] { return isFinished || hasFirst(); });
    rankWaits = false;
  }
  if (isStopped || !hasFirst() || items.front().load != load) {
    isStopped = true; // the rank does not follow the plan
    lock.unlock();
    changed.notify_all();
    return std::nullopt;
  }
  if (items.front().error)
    std::rethrow_exception(items.front().error);
  Block block = std::move(items.front().block);
  items.pop_front();
  itemBytes -= sizeOf(load);
  return block;
}

/// Gives the block of a load to the thread.
void ReadAhead::giveBack(const PlannedLoad &load, Block block) {
  bool wakes = false;
  {
    std::lock_guard lock(mutex);
    unused.emplace(sizeOf(load), std::move(block));
    // Wake the thread once for many loads.
    wakes = threadWaits && itemBytes <= maxBytes / 2;
  }
  if (wakes)
    changed.notify_all();
}

void ReadAhead::load(const PlannedLoad &load, Bytes output) {
  std::optional<Block> block = take(load);
  if (!block)
    return loadPieces(source, load, output);
  std::copy_n(block->get(), output.size(), output.data());
  giveBack(load, std::move(*block));
}

void ReadAhead::load(const PlannedLoad &load, Block &block) {
  std::optional<Block> filled = take(load);
  if (!filled)
    return loadPieces(source, load, {block.get(), load.bytes});
  giveBack(load, std::exchange(block, std::move(*filled)));
}
