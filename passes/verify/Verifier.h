//===- Verifier.h - Passes that check pipelines -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFY_VERIFIER_H
#define CHIMERA_PASSES_VERIFY_VERIFIER_H

#include "passes/describe/Bridge.h"

namespace chimera {

/// A module pass with base `Base` that calls `verify` for every pipeline and
/// changes nothing. Fails if any call fails.
template <typename Base, mlir::LogicalResult (*verify)(PipelineOp)>
struct Verifier : Base {
  void runOnOperation() override {
    for (auto pipeline : this->getOperation().template getOps<PipelineOp>())
      if (mlir::failed(verify(pipeline)))
        this->signalPassFailure();
    this->markAllAnalysesPreserved();
  }
};

/// Checks the operands of actions, of the sums of losses and, in a step with a
/// flush, of updates and of the yield. Each operand must be the value that the
/// label of the op (its pipeline, stage, micro-batches and part) asks for. No
/// two actions may add to one sum, a flush updates each replica once, and a
/// step has one sum of its losses. If steps overlap, weights, stashes and
/// activations may be loop-carried. Then verifySections checks these values
/// instead.
///
/// Fails, and reports up to twenty wrong operands and the number of the others,
/// each on the op that uses the operand. Does not check which actions exist:
/// the schedule library does. Takes time linear in the number of ops.
mlir::LogicalResult verifyOperands(const schedule::Problem &problem,
                                   const Layout &layout,
                                   llvm::ArrayRef<SectionOp> sections);

/// Checks a step, or a prologue, step and epilogue, as a graph of values,
/// regardless of the order of its ops. Runs verifyOperands and verifySections.
/// Also checks that the whole gradient of every update is reduced over all
/// copies before the update. Fails, and reports every violation.
mlir::LogicalResult verifyStepGraph(PipelineOp pipeline,
                                    const schedule::Problem &problem,
                                    llvm::ArrayRef<SectionOp> sections);

/// Checks a pipeline before the pass `project`. Workers may share nothing but
/// channels:
///
/// - Every op must name its worker and use no value of another worker.
/// - Every transfer has exactly one wait.
/// - The sends and receives of each channel match, and verifySections succeeds.
/// - If `isSplit`, all-reduces must be split into starts and waits. Otherwise
///   an all-reduce may use values of all workers.
///
/// Fails and reports every violation. If the arguments of a section or the
/// values that it yields are not the loop-carried values of all replicas,
/// reports only this.
mlir::LogicalResult verifySharing(PipelineOp pipeline, bool isSplit);

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFY_VERIFIER_H
