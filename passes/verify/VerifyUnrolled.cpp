//===- VerifyUnrolled.cpp - The step has the actions of its orders --------===//
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

#define GEN_PASS_DEF_VERIFYUNROLLEDPASS
#include "passes/Passes.h.inc"

namespace {

/// Checks that the sections have each action of the problem exactly once.
LogicalResult verifyActions(const schedule::Problem &problem,
                            ArrayRef<SectionOp> sections) {
  schedule::ActionIds ids(problem);
  std::vector<bool> stands(ids.count());
  int64_t missing = ids.required();
  LogicalResult result = success();
  for (SectionOp section : sections)
    for (auto op : section.getBody().getOps<ActionOp>()) {
      schedule::Action action = actionOf(op);
      if (isa<EpilogueOp>(section))
        action.microBatch += problem.microBatches();
      std::optional<int64_t> id = ids.find(action);
      if (!id || stands[*id]) {
        result =
            op.emitOpError("expected each action of the step exactly once");
        continue;
      }
      stands[*id] = true;
      --missing;
    }
  if (succeeded(result) && missing > 0)
    return SectionOp(sections.front())->emitOpError("expected all ")
           << ids.required() << " actions of the step, of which " << missing
           << " are missing";
  return result;
}

LogicalResult verifyUnrolled(PipelineOp pipeline) {
  if (failed(requireOrders(pipeline)))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  for (SectionOp section : *sections)
    for (auto action : section.getBody().getOps<ActionOp>())
      if (action.getWorker())
        return action.emitOpError("expected an action without a worker before "
                                  "chimera-schedule");
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  of->problem.recompute.clear(); // chimera-recompute inserts recomputes later
  LogicalResult graph = verifyStepGraph(pipeline, of->problem, *sections);
  LogicalResult actions = verifyActions(of->problem, *sections);
  return success(succeeded(graph) && succeeded(actions));
}

struct VerifyUnrolled
    : Verifier<impl::VerifyUnrolledPassBase<VerifyUnrolled>, verifyUnrolled> {};

} // namespace
} // namespace chimera
