//===- VerifyStepGraph.h - Checks of a step as a graph of values *- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFYSTEPGRAPH_H
#define CHIMERA_PASSES_VERIFYSTEPGRAPH_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks a step, or a prologue, step and epilogue, as a graph of values,
/// regardless of the order of its ops. Runs verifyOperands and verifySections.
/// Also checks that the whole gradient of every update is reduced over all
/// copies before the update. Fails, and reports every violation.
mlir::LogicalResult verifyStepGraph(PipelineOp pipeline,
                                    const schedule::Problem &problem,
                                    llvm::ArrayRef<SectionOp> sections);

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFYSTEPGRAPH_H
