//===- PlanInputs.h - Models and machines as plans take them ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the IR becomes a plan::Model and a plan::Machine.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_PLANINPUTS_H
#define CHIMERA_PASSES_PLANINPUTS_H

#include "compiler/plan/Model.h"
#include "dialect/Chimera.h"

namespace chimera {

/// The model of `op` with values of these types and this optimizer. Fails, with
/// a diagnostic, where it cannot be trained.
mlir::FailureOr<plan::Model> planModelOf(ModelOp op, program::Types types,
                                         llvm::StringRef optimizer);

/// The model of the pipeline, none if it names none. Fails, with a diagnostic,
/// where there is no such model or it cannot be trained.
mlir::FailureOr<std::optional<plan::Model>> planModelOf(PipelineOp pipeline);

/// Reads the machine's profiles. Fails, with a diagnostic, where one cannot be
/// read.
mlir::FailureOr<plan::Machine> planMachineOf(MachineOp op);

/// In the unit of `link`.
schedule::Link linkOf(LinkAttr link);

/// What the machine's messages and all-reduces take, in nanoseconds.
schedule::Network networkOf(MachineOp op);

} // namespace chimera

#endif // CHIMERA_PASSES_PLANINPUTS_H
