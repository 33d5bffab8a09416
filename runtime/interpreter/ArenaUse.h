//===- ArenaUse.h - Bytes of the arena that hold a value --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_ARENAUSE_H
#define CHIMERA_RUNTIME_INTERPRETER_ARENAUSE_H

#include "runtime/program/Program.h"

#include <vector>

namespace chimera::runtime {

/// For each instruction the bytes of the worker's arena that hold a value which
/// is still needed: those of states always, those of any other buffer from the
/// instruction that writes it (the post, if it is received) to the last that
/// reads it (the wait, if it is sent or summed). Where steps differ, the most.
/// Requires a verified program.
std::vector<uint64_t> arenaBytesInUse(const program::WorkerT &worker);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_ARENAUSE_H
