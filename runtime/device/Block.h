//===- Block.h - Memory that requests may use -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After an error, a rank drops its requests (channel/Channels.h) and then frees
// their memory. But MPI can cancel a receive only if no part of its message has
// arrived, and it cannot cancel a send or an MPI_Iallreduce. Such an operation
// ends when the other ranks do their part. A rank that is stopped or
// disconnected may do this late or never. Until then MPI may read or write the
// memory.
//
// So the memory of requests is in blocks. If MPI cannot end a request, no block
// is freed from then on. This is no loss: the rank has failed, and its process
// is about to end.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_BLOCK_H
#define CHIMERA_RUNTIME_DEVICE_BLOCK_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chimera::runtime {

/// Owns the memory of blocks and frees it. Every device (Device.h) is one.
class MemoryOwner {
public:
  virtual void free(std::byte *memory) noexcept = 0;

protected:
  ~MemoryOwner() = default;
};

/// Frees memory of `owner`, or of the host if `owner` is null. Does nothing
/// after a call of stopFreeingBlocks.
struct FreeMemory {
  MemoryOwner *owner = nullptr;
  void operator()(std::byte *memory) const noexcept;
};
/// Memory of the host or of a device. Two blocks of the same device and size
/// can be exchanged.
using Block = std::unique_ptr<std::byte, FreeMemory>;

/// The default alignment of blocks: a cache line.
inline constexpr uint64_t kBlockAlignment = 64;

/// Allocates at least `bytes` bytes of host memory, uninitialised, aligned to
/// `alignment`, a power of two. Throws std::bad_alloc.
Block makeBlock(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// The number of bytes that makeBlock allocates. Throws std::bad_alloc if this
/// number is too large for uint64_t.
uint64_t blockBytes(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// From now on, no block is freed until the process ends. Any thread may call
/// this function, any number of times.
void stopFreeingBlocks() noexcept;
bool blocksAreNeverFreed() noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BLOCK_H
