//===- StepGraph.h - What the ops of a step take and give -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_STEPGRAPH_H
#define CHIMERA_PASSES_STEPGRAPH_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks a step, or a prologue, step and epilogue, as a graph of values,
/// whatever its order: what verifyOperands and verifySections check, and that
/// the whole gradient of every update is reduced before it, over all copies.
/// Fails, and reports all.
mlir::LogicalResult verifyStepGraph(PipelineOp pipeline,
                                    const schedule::Problem &problem,
                                    llvm::ArrayRef<SectionOp> sections);

} // namespace chimera

#endif // CHIMERA_PASSES_STEPGRAPH_H
