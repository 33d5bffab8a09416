//===- KeptMemory.h - Large memory between two uses -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C library gives large memory back to the system when it is freed, which
// then clears every page of it again for the next use. A training step takes
// and frees the same sizes over and over, so here they are kept in between.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_KEPTMEMORY_H
#define CHIMERA_RUNTIME_STAGE_TORCH_KEPTMEMORY_H

#include <cstddef>
#include <mutex>
#include <vector>

namespace chimera::runtime {

/// Memory of at least kSmallest bytes. What is in use and what is kept are
/// together never more than what was in use at some time, so keeping raises no
/// peak of tensors. Other memory that is taken when few of them are in use,
/// such as that of a gathered model, comes on top. Any thread may take and
/// free.
class KeptMemory {
public:
  /// The C library itself keeps what is smaller.
  static constexpr size_t kSmallest = size_t(1) << 20;

  /// Aligned as LibTorch's kernels expect, with anything in it. Throws what
  /// LibTorch throws where there is no memory.
  void *take(size_t bytes);
  /// `bytes` as they were taken.
  void free(void *memory, size_t bytes) noexcept;

  /// Bytes that nothing uses.
  size_t keptBytes() const;

  KeptMemory() = default;
  ~KeptMemory();
  KeptMemory(const KeptMemory &) = delete;

private:
  struct Block {
    void *memory;
    size_t bytes;
  };
  void dropOldest() noexcept;

  mutable std::mutex mutex;
  std::vector<Block> blocks; // that are kept, the oldest first
  size_t kept = 0;
  size_t inUse = 0;
  size_t mostInUse = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_KEPTMEMORY_H
