//===- Block.h - Memory that requests may use -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After an error, requests are dropped and then their memory is freed. MPI can
// cancel a receive if no message has arrived for it. It cannot cancel a message
// that has arrived in part, a send, or a collective sum. These end when the
// other ranks do their part. A rank that is stopped or disconnected may do this
// late or never. Until then MPI may read or write the memory.
//
// So the memory of requests is in blocks. After the first request that MPI
// could not end, no block is freed any more. This is no loss: such a rank has
// failed, and its process is about to end.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_BLOCK_H
#define CHIMERA_RUNTIME_DEVICE_BLOCK_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chimera::runtime {

class Device;

/// Frees memory of `device`, or of the host if `device` is null. Does nothing
/// after stopFreeingBlocks.
struct FreeMemory {
  Device *device = nullptr;
  void operator()(std::byte *memory) const noexcept;
};
/// Memory of the host or of a device. Blocks of equal size of the same device
/// can be exchanged.
using Block = std::unique_ptr<std::byte, FreeMemory>;

/// The default alignment of blocks: a cache line.
inline constexpr uint64_t kBlockAlignment = 64;

/// Allocates at least `bytes` bytes of host memory, uninitialised, aligned to
/// `alignment`, a power of two. Throws std::bad_alloc.
Block makeBlock(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// The number of bytes that makeBlock allocates. Throws std::bad_alloc if it
/// overflows.
uint64_t blockBytes(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// From now on, no block is freed until the process ends. Any thread may call
/// it, and more than once.
void stopFreeingBlocks() noexcept;
bool blocksAreNeverFreed() noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BLOCK_H
