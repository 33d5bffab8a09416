//===- VerifyScheduled.cpp - A step is a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/ScheduledProblem.h"
#include "passes/verify/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/Passes.h.inc"

namespace {

/// Checks that all-reduces of a step with a flush are after all actions.
/// chimera-synchronise looks for them only there.
LogicalResult verifyFlush(Block &step) {
  AllReduceOp reduce;
  for (Operation &op : step) {
    if (isa<ActionOp>(op) && reduce)
      return reduce.emitOpError(
          "expected all-reduces after all actions of the step");
    if (auto found = dyn_cast<AllReduceOp>(op); found && !reduce)
      reduce = found;
  }
  return success();
}

LogicalResult verifyScheduled(PipelineOp pipeline) {
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections) || failed(refuseOrders(pipeline)))
    return failure();
  LogicalResult graph = verifyStepGraph(pipeline, of->problem, *sections);
  LogicalResult order =
      reportOnActions(*sections, schedule::verify(of->problem, of->schedule));
  LogicalResult flush = success();
  if (!stepsOverlap(*sections))
    flush = verifyFlush(sections->front().getBody().front());
  return success(succeeded(graph) && succeeded(order) && succeeded(flush));
}

struct VerifyScheduled
    : Verifier<impl::VerifyScheduledPassBase<VerifyScheduled>,
               verifyScheduled> {};

} // namespace
} // namespace chimera
