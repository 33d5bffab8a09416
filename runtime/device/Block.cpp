//===- Block.cpp - Memory that requests may use ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Block.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

using namespace chimera::runtime;

namespace {
std::atomic<bool> keeping{false};
} // namespace

void FreeMemory::operator()(std::byte *memory) const noexcept {
  if (!blocksAreNeverFreed())
    return owner ? owner->free(memory) : std::free(memory);
  // Leak checkers do not report memory that is in this list. The list is never
  // destroyed, because blocks may be freed after static destruction.
  static std::mutex mutex;
  static auto *kept = new (std::nothrow) std::vector<std::byte *>;
  std::lock_guard lock(mutex);
  try {
    if (kept)
      kept->push_back(memory);
  } catch (const std::bad_alloc &) {
    // If there is no memory for the list entry, the block is still not freed.
  }
}

uint64_t chimera::runtime::blockBytes(uint64_t bytes, uint64_t alignment) {
  alignment = std::max(alignment, kBlockAlignment);
  uint64_t size = std::max(bytes, alignment);
  if (size > UINT64_MAX - alignment)
    throw std::bad_alloc();
  return (size + alignment - 1) / alignment * alignment;
}

Block chimera::runtime::makeBlock(uint64_t bytes, uint64_t alignment) {
  auto *memory = static_cast<std::byte *>(std::aligned_alloc(
      std::max(alignment, kBlockAlignment), blockBytes(bytes, alignment)));
  if (!memory)
    throw std::bad_alloc();
  return Block(memory);
}

void chimera::runtime::stopFreeingBlocks() noexcept { keeping.store(true); }
bool chimera::runtime::blocksAreNeverFreed() noexcept { return keeping.load(); }
