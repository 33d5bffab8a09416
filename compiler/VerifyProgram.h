//===- VerifyProgram.h - Verdicts on allocated IR ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_VERIFYPROGRAM_H
#define CHIMERA_COMPILER_VERIFYPROGRAM_H

#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace chimera {

/// Runs verifyProgram on what emitProgram made of `module`. Fails if that finds
/// anything, with a diagnostic for each violation at the source location of the
/// instruction that is wrong, at the worker's or the pipeline's where there is
/// none.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module,
                                  const program::ProgramT &program);

/// Registers the pass `chimera-verify-program`, which does so for allocated IR,
/// whoever wrote it, and changes nothing.
void registerVerifyProgramPass();

} // namespace chimera

#endif // CHIMERA_COMPILER_VERIFYPROGRAM_H
