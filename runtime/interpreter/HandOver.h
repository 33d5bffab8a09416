//===- HandOver.h - Memory that may go with its message ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between ranks of one process a message can change its owner instead of being
// copied: the two ends exchange memory. This file says which ones may.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_HANDOVER_H
#define CHIMERA_RUNTIME_INTERPRETER_HANDOVER_H

#include "runtime/program/Program.h"

#include <vector>

namespace chimera::runtime {

/// A worker's arena, cut wherever no buffer lies. Each block can be anywhere in
/// memory where buffers may begin.
struct Blocks {
  struct Place {
    uint32_t block;
    uint64_t offset; ///< in the block
  };
  std::vector<uint64_t> bytes; ///< by block
  std::vector<Place> places;   ///< by buffer; a stash's means nothing
};

Blocks blocksOf(const program::ProgramT &program,
                const program::WorkerT &worker);

/// For each instruction whether it is a post whose message fills a block that
/// may be exchanged for another one of its size. No state may lie in that
/// block, and nothing that a rename moves. Nothing may touch the block of a
/// send before its wait, and whatever touches it next must overwrite it.
/// Requires a verified program.
std::vector<bool> findHandOvers(const program::ProgramT &program,
                                const program::WorkerT &worker,
                                const Blocks &blocks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_HANDOVER_H
