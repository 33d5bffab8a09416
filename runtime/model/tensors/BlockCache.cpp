//===- BlockCache.cpp - Reuse of large memory blocks ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/BlockCache.h"

#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>

namespace chimera::runtime {

void *BlockCache::take(size_t bytes) {
  std::lock_guard lock(mutex);
  void *memory;
  // Search from the newest block to the oldest, because a new block may still
  // be in the processor's caches.
  auto same = [&](const Block &block) { return block.bytes == bytes; };
  auto found = std::find_if(blocks.rbegin(), blocks.rend(), same);
  if (found != blocks.rend()) {
    memory = found->memory;
    blocks.erase(std::next(found).base());
    kept -= bytes;
  } else {
    const size_t most = std::max(mostInUse, inUse + bytes);
    while (inUse + bytes + kept > most)
      dropOldest();
    memory = c10::alloc_cpu(bytes);
    mostInUse = most;
  }
  inUse += bytes;
  return memory;
}

void BlockCache::free(void *memory, size_t bytes) noexcept {
  std::lock_guard lock(mutex);
  inUse -= bytes;
  try {
    blocks.push_back({memory, bytes});
    kept += bytes;
  } catch (const std::bad_alloc &) {
    c10::free_cpu(memory);
  }
}

size_t BlockCache::cachedBytes() const {
  std::lock_guard lock(mutex);
  return kept;
}

BlockCache::~BlockCache() {
  while (!blocks.empty())
    dropOldest();
}

void BlockCache::dropOldest() noexcept {
  c10::free_cpu(blocks.front().memory);
  kept -= blocks.front().bytes;
  blocks.erase(blocks.begin());
}

} // namespace chimera::runtime
