//===- ZeroCopy.h - Messages that are passed without a copy -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages that can be passed without a copy. Between ranks of one process,
// the sender and the receiver of such a message exchange their memory.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_ZEROCOPY_H
#define CHIMERA_RUNTIME_INTERPRETER_ZEROCOPY_H

#include "runtime/program/Program.h"

#include <vector>

namespace chimera::runtime {

/// A worker's arena, divided into blocks at every place where no buffer is.
/// Each block can be allocated separately, with the alignment of buffers.
struct Blocks {
  struct Location {
    uint32_t block;
    uint64_t offset; ///< in the block
  };
  std::vector<uint64_t> bytes;     ///< by block
  std::vector<Location> locations; ///< by buffer; meaningless for a stash
};

Blocks blocksOf(const program::ProgramT &program,
                const program::WorkerT &worker);

/// For each instruction, whether it is a post whose message fills a whole block
/// that can be exchanged for another block of the same size. Such a block has
/// no state and nothing that a rename moves. If the post is a send, no
/// instruction uses the block before its wait, and the next one that uses it
/// overwrites it. Requires a verified program.
std::vector<bool> findZeroCopyMessages(const program::ProgramT &program,
                                       const program::WorkerT &worker,
                                       const Blocks &blocks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_ZEROCOPY_H
