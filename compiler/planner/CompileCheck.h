//===- CompileCheck.h - Whether a planned pipeline compiles -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner estimates the memory of a step. A program also needs memory for
// alignment and for messages that wait. The amount is known only when the
// buffers of each worker are allocated. So the planner compiles a plan before
// it proposes the plan.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_COMPILECHECK_H
#define CHIMERA_COMPILER_PLANNER_COMPILECHECK_H

#include <string>

namespace chimera {

/// Compiles the module `text`, made by describePlan, up to the allocation of
/// buffers. Returns the first error, or an empty text. Several threads may call
/// this function at the same time: each call has its own MLIR context.
std::string compileError(const std::string &text);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_COMPILECHECK_H
