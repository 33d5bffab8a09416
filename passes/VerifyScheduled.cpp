//===- VerifyScheduled.cpp - A step is a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Sections.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/Passes.h.inc"

namespace {

/// True if `value` is the whole sum of a replica's weight gradients: made by
/// one of its actions and added to no further.
bool isSumOf(Value value, uint32_t pipeline, uint32_t stage) {
  auto action = value.getDefiningOp<ActionOp>();
  if (!action || !action.getAccumulator() || action.getPipeline() != pipeline ||
      action.getStage() != stage)
    return false;
  return llvm::none_of(value.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<ActionOp>(use.getOwner());
    return user && user.getAccumulator() == &use;
  });
}

/// The all-reduce takes the whole sum of each pipeline, from all copies.
LogicalResult verifyAllReduce(AllReduceOp reduce, PipelineOp pipeline,
                              const Layout &layout) {
  if (reduce.getWidth() != pipeline.getDataParallel())
    return reduce.emitOpError("expected width ")
           << pipeline.getDataParallel() << ", the pipeline's data_parallel, "
           << "got " << reduce.getWidth();
  if (isa<LossType>(reduce.getSummands().front().getType()))
    return success();
  if (reduce.getSummands().size() != layout.directions.size())
    return reduce.emitOpError("expected a summand of each of ")
           << layout.directions.size() << " pipelines, got "
           << reduce.getSummands().size();
  for (auto [p, summand] : llvm::enumerate(reduce.getSummands()))
    if (!isSumOf(summand, p, reduce.getStage()))
      return reduce.emitOpError("expected summand ")
             << p << " to be the whole sum of pipeline " << p << ", stage "
             << reduce.getStage();
  return success();
}

/// Each optimizer step takes a gradient that every replica's sum has entered.
LogicalResult verifyUpdate(OptimizerStepOp update, bool replicated) {
  Value gradient = update.getGradient();
  auto reduce = gradient.getDefiningOp<AllReduceOp>();
  if (replicated && !reduce)
    return update.emitOpError("expected a reduced gradient, got that of one "
                              "replica");
  bool own = reduce
                 ? reduce.getStage() == update.getStage() &&
                       cast<OpResult>(gradient).getResultNumber() ==
                           update.getPipeline()
                 : isSumOf(gradient, update.getPipeline(), update.getStage());
  if (!own)
    return update.emitOpError("expected the gradient of pipeline ")
           << update.getPipeline() << ", stage " << update.getStage();
  return success();
}

/// No gradient is lost: each sum is added to, reduced, or used by an update.
LogicalResult verifyUsed(ActionOp action) {
  if (!action.getAccumulator() || !action->getResult(0).use_empty())
    return success();
  return action.emitOpError("expected a use of its sum");
}

/// In a step that flushes, forward, recompute and backward read the weights
/// that the step takes for their replica.
LogicalResult verifyWeights(ActionOp action, Block &step,
                            const Layout &layout) {
  uint32_t p = action.getPipeline(), s = action.getStage();
  // Others the schedule library reports.
  if (p >= layout.directions.size() || s >= layout.stages.size())
    return success();
  unsigned index = 2 * replicaIndex(layout, p, s);
  for (Value operand : action->getOperands())
    if (isa<WeightsType>(operand.getType()) &&
        (index >= step.getNumArguments() || operand != step.getArgument(index)))
      return action.emitOpError("expected the weights of pipeline ")
             << p << ", stage " << s << " that the step takes";
  return success();
}

LogicalResult verifyReduced(PipelineOp pipeline, Block &section,
                            const Layout &layout) {
  bool replicated = layout.directions.size() * pipeline.getDataParallel() > 1;
  LogicalResult result = success();
  for (Operation &op : section) {
    if (auto action = dyn_cast<ActionOp>(op))
      if (failed(verifyUsed(action)))
        result = failure();
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      if (failed(verifyAllReduce(reduce, pipeline, layout)))
        result = failure();
    if (auto update = dyn_cast<OptimizerStepOp>(op))
      if (failed(verifyUpdate(update, replicated)))
        result = failure();
  }
  return result;
}

LogicalResult verify(PipelineOp pipeline) {
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  FailureOr<Layout> layout = layoutOf(pipeline);
  LogicalResult result = success();
  if (!stepsOverlap(*sections)) {
    Block &step = sections->front().getBody().front();
    for (auto action : step.getOps<ActionOp>())
      if (failed(verifyWeights(action, step, *layout)))
        result = failure();
  }
  for (SectionOp section : *sections)
    if (failed(verifyReduced(pipeline, section.getBody().front(), *layout)))
      result = failure();
  if (failed(verifySections(pipeline)))
    result = failure();
  if (failed(report(sections->front(), "",
                    schedule::verify(of->problem, of->schedule))))
    return failure();
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
