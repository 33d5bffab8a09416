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
/// which is still needed. Weights and optimizer state are always needed. Any
/// other buffer is needed from the instruction that writes it to the last
/// instruction that reads it. A receive writes from its post on. A send or an
/// all-reduce reads until its wait. If the bytes differ from step to step, the
/// result is the maximum. Requires a verified program.
std::vector<uint64_t> arenaBytesInUse(const program::WorkerT &worker);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_ARENAUSE_H
