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

/// For each instruction, the bytes of the worker's arena that have a value
/// which is still needed. States count always. Any other buffer counts from the
/// instruction that writes it (for a receive, its post) to the last instruction
/// that reads it (for a send or all-reduce, its wait). If steps differ, the
/// maximum counts. Requires a verified program.
std::vector<uint64_t> arenaBytesInUse(const program::WorkerT &worker);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_ARENAUSE_H
