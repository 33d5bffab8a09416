//===- Emit.h - From the allocated IR to a program --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_EMIT_H
#define CHIMERA_COMPILER_EMIT_H

#include "dialect/Chimera.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace chimera {

/// The one pipeline of `module`. Fails, with a diagnostic, if the module has
/// none or several: a program file contains one pipeline.
mlir::FailureOr<PipelineOp> onlyPipelineOf(mlir::ModuleOp module);

/// The program of the module's one allocated pipeline, not yet verified by
/// verifyProgram. If a worker states no peak of its memory, the peak is
/// computed. Null, with a diagnostic, if the module has no pipeline or several,
/// or if the pipeline is not allocated.
std::unique_ptr<program::ProgramT> emitProgram(mlir::ModuleOp module);

} // namespace chimera

#endif // CHIMERA_COMPILER_EMIT_H
