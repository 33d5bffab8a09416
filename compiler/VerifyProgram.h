//===- VerifyProgram.h - Program verification as diagnostics ----*- C++ -*-===//
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

/// Verifies `program`, which emitProgram made of `module`. Fails if
/// program::verifyProgram finds a violation. Each violation is a diagnostic at
/// the source location of the wrong instruction or, if it has none, of its
/// worker or the pipeline.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module,
                                  const program::ProgramT &program);

/// Registers the pass `chimera-verify-program`, which emits and verifies the
/// program of an allocated module, and does not change the module.
void registerVerifyProgramPass();

} // namespace chimera

#endif // CHIMERA_COMPILER_VERIFYPROGRAM_H
