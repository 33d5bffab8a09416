//===- VerifyScheduled.cpp - A step is a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Verify.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/Passes.h.inc"

namespace {

/// Each optimizer step takes a gradient that every replica's sum has entered.
LogicalResult verifyReduced(PipelineOp pipeline, StepOp step,
                            const Layout &layout) {
  bool replicated = layout.directions.size() * pipeline.getDataParallel() > 1;
  LogicalResult result = success();
  for (auto update : step.getBody().front().getOps<OptimizerStepOp>()) {
    auto reduce = update.getGradient().getDefiningOp<AllReduceOp>();
    if (replicated && !reduce) {
      result = update.emitOpError("expected a reduced gradient, got that of one"
                                  " replica");
      continue;
    }
    if (reduce && reduce.getSummands().size() != layout.directions.size())
      result = reduce.emitOpError("expected a summand of each of ")
               << layout.directions.size() << " pipelines, got "
               << reduce.getSummands().size();
  }
  return result;
}

LogicalResult verify(PipelineOp pipeline) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
  FailureOr<StepOp> step = stepOf(pipeline);
  if (failed(layout) || failed(problem) || failed(schedule) || failed(step))
    return failure();
  LogicalResult result = verifyReduced(pipeline, *step, *layout);
  for (const schedule::Violation &violation :
       schedule::verify(*problem, *schedule))
    result = step->emitOpError(violation.message);
  return result;
}

struct VerifyScheduled : impl::VerifyScheduledPassBase<VerifyScheduled> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(verify(pipeline)))
        signalPassFailure();
  }
};

} // namespace
} // namespace chimera
