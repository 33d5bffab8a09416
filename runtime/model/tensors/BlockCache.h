//===- BlockCache.h - Reuse of large memory blocks --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C library returns large blocks to the system when they are freed. The
// system then clears all their pages before the next use. A training step
// allocates and frees the same sizes again and again, so this class keeps freed
// blocks for reuse.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_BLOCKCACHE_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_BLOCKCACHE_H

#include <cstddef>
#include <mutex>
#include <vector>

namespace chimera::runtime {

/// An allocator for blocks of at least kSmallest bytes that keeps freed blocks.
/// The sum of used and kept bytes never exceeds the peak of used bytes, so the
/// cache does not raise the peak memory of tensors. It may raise the peak
/// memory of the process: if another allocator needs memory while few tensors
/// are in use, the kept blocks add to it. Any thread may take and free blocks.
class BlockCache {
public:
  /// The minimum size of a block. The C library already reuses smaller blocks.
  static constexpr size_t kSmallest = size_t(1) << 20;

  /// Returns uninitialised memory with the alignment that LibTorch's kernels
  /// expect. Throws LibTorch's exception if there is not enough memory.
  void *take(size_t bytes);
  /// `bytes` must be the number that was passed to take().
  void free(void *memory, size_t bytes) noexcept;

  /// The number of bytes in kept blocks, which are free for reuse.
  size_t cachedBytes() const;

  BlockCache() = default;
  ~BlockCache();
  BlockCache(const BlockCache &) = delete;

private:
  struct Block {
    void *memory;
    size_t bytes;
  };
  void dropOldest() noexcept;

  mutable std::mutex mutex;
  std::vector<Block> blocks; // kept blocks, the oldest first
  size_t kept = 0;
  size_t inUse = 0;
  size_t mostInUse = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_BLOCKCACHE_H
