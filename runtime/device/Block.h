//===- Block.h - Memory that requests may use -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After an error requests are dropped, and then their memory is freed. MPI can
// take back a receive that no message has come for. It cannot take back a
// message that is here in part, a send, or a sum of its own: these end when the
// other ranks do their part, which a rank that is stopped or cut off may do
// late, or never. Until then MPI may write to the memory, or read it.
//
// So the memory of requests is in blocks, and from the first request that MPI
// could not end on no block is freed any more. That costs nothing: a rank whose
// request could not be ended has failed, and its process is about to end.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_BLOCK_H
#define CHIMERA_RUNTIME_DEVICE_BLOCK_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chimera::runtime {

class Device;

/// Frees memory of `device`, or of the host where there is none, unless blocks
/// are kept.
struct FreeMemory {
  Device *device = nullptr;
  void operator()(std::byte *memory) const noexcept;
};
/// Memory of the host or of a device. Blocks of equal size of the same device
/// can be exchanged for each other.
using Block = std::unique_ptr<std::byte, FreeMemory>;

/// Where blocks begin that nobody wants elsewhere: a multiple of a cache line.
inline constexpr uint64_t kBlockAlignment = 64;

/// At least `bytes` bytes of the host with anything in them, which begin at a
/// multiple of `alignment`, a power of two. Throws std::bad_alloc.
Block makeBlock(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// How many bytes makeBlock takes. Throws std::bad_alloc where no number is
/// large enough.
uint64_t blockBytes(uint64_t bytes, uint64_t alignment = kBlockAlignment);

/// For the rest of the process's life blocks are not freed. Any thread may call
/// it, more than once.
void keepBlocks() noexcept;
bool blocksAreKept() noexcept;

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DEVICE_BLOCK_H
