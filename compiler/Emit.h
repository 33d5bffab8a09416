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

/// The module's one pipeline. Fails, with a diagnostic, where it has none or
/// several: a program file holds one.
mlir::FailureOr<PipelineOp> onlyPipelineOf(mlir::ModuleOp module);

/// The program of the module's one allocated pipeline; verifyProgram has not
/// run on it. Where a worker states no peak, the program states the one that it
/// has. Null, with a diagnostic, where the module has no pipeline or
/// several, or where it is not allocated.
std::unique_ptr<program::ProgramT> emitProgram(mlir::ModuleOp module);

} // namespace chimera

#endif // CHIMERA_COMPILER_EMIT_H
