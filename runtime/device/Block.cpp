//===- Block.cpp - Memory that requests may use ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Block.h"

#include "runtime/device/Device.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

using namespace chimera::runtime;

namespace {
constexpr uint64_t kAlignment = 64;

std::atomic<bool> keeping{false};
} // namespace

void FreeMemory::operator()(std::byte *memory) const noexcept {
  if (!blocksAreKept())
    return device ? device->free(memory) : std::free(memory);
  // What is listed is no leak for those who look for leaks. The list is never
  // destroyed: blocks may end after it would be.
  static std::mutex mutex;
  static auto *kept = new (std::nothrow) std::vector<std::byte *>;
  std::lock_guard lock(mutex);
  try {
    if (kept)
      kept->push_back(memory);
  } catch (const std::bad_alloc &) {
    // Not listed, but kept.
  }
}

uint64_t chimera::runtime::blockBytes(uint64_t bytes) {
  uint64_t size = std::max(bytes, kAlignment);
  if (size > UINT64_MAX - kAlignment)
    throw std::bad_alloc();
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

Block chimera::runtime::makeBlock(uint64_t bytes) {
  auto *memory = static_cast<std::byte *>(
      std::aligned_alloc(kAlignment, blockBytes(bytes)));
  if (!memory)
    throw std::bad_alloc();
  return Block(memory);
}

void chimera::runtime::keepBlocks() noexcept { keeping.store(true); }
bool chimera::runtime::blocksAreKept() noexcept { return keeping.load(); }
