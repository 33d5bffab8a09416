//===- CompileCheck.h - Whether a planned pipeline compiles -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner counts what a step holds. A program also has messages that wait,
// and alignment: how much they take is known when a worker's buffers are
// allocated. So a plan is compiled before it is proposed.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_COMPILECHECK_H
#define CHIMERA_COMPILER_PLANNER_COMPILECHECK_H

#include <string>

namespace chimera {

/// Empty if the module `text`, made by describePlan, compiles as far as its
/// buffers, else the first error. Several threads may call it at a time: each
/// call has an MLIR context of its own.
std::string compileFault(const std::string &text);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_COMPILECHECK_H
