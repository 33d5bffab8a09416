//===- Blocks.h - The arena, divided into blocks ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A worker's arena, divided into blocks. Buffers that overlap are in the same
// block, and no buffer is in two blocks. So each block can be allocated
// separately, with the alignment of buffers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_BLOCKS_H
#define CHIMERA_RUNTIME_INTERPRETER_BLOCKS_H

#include "runtime/program/Program.h"

#include <vector>

namespace chimera::runtime {

struct Blocks {
  struct Location {
    uint32_t block;
    uint64_t offset; ///< in the block
  };
  std::vector<uint64_t> bytes; ///< by block
  /// By block: whether every buffer in the block fills it. Only such a block
  /// can be exchanged for other memory of the same size.
  std::vector<bool> isUniform;
  std::vector<Location> locations; ///< by buffer; not used for a stash
};

Blocks blocksOf(const program::ProgramT &program,
                const program::WorkerT &worker);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_BLOCKS_H
