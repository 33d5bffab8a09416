//===- Chunks.h - Splits long messages into chunks --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_CHUNKS_H
#define CHIMERA_RUNTIME_SYSTEM_CHUNKS_H

#include <algorithm>
#include <cstdint>

namespace chimera::runtime {

/// Calls `move(offset, size)` for each chunk of a message of `bytes` bytes.
/// Every chunk has `most` bytes, but the last one may be shorter. For an empty
/// message, calls `move` once, with size 0.
template <typename Move>
void forEachChunk(uint64_t bytes, uint64_t most, Move move) {
  uint64_t at = 0;
  do {
    uint64_t size = std::min(most, bytes - at);
    move(at, size);
    at += size;
  } while (at < bytes);
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_CHUNKS_H
