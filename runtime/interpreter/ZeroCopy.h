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

#include "runtime/interpreter/Blocks.h"

namespace chimera::runtime {

/// For each instruction, whether it posts a message that can be passed without
/// a copy. Requires a verified program. The message must satisfy these
/// conditions:
/// - Every buffer in the block of the message fills the whole block.
/// - No buffer in the block is a state (weights or optimizer state), or an
///   operand or result of a rename.
/// - If the post is a send, no instruction uses the block between the post and
///   its wait. After the wait, the next instruction that uses the block
///   overwrites it.
std::vector<bool> findZeroCopyMessages(const program::ProgramT &program,
                                       const program::WorkerT &worker,
                                       const Blocks &blocks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_ZEROCOPY_H
