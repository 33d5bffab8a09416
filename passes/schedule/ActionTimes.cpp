//===- ActionTimes.cpp - The times of a step's actions --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ActionTimes.h"

using namespace mlir;

namespace chimera {

FailureOr<ActionTimes> ActionTimes::of(PipelineOp pipeline,
                                       ScheduleAnalysis &analysis) {
  const ScheduledProblem *of = analysis.verified();
  if (!of)
    return failure();
  const schedule::Timing &timing = analysis.timing();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  ActionTimes result;
  std::vector<size_t> next(of->schedule.workers.size());
  for (SectionOp section : *sections)
    for (auto action : section.getBody().getOps<ActionOp>()) {
      uint32_t worker = *action.getWorker();
      size_t index = next[worker]++;
      result.times[action] = {timing.starts[worker][index],
                              timing.ends[worker][index]};
    }
  return result;
}

Operation *ActionTimes::insertionPointAt(Operation *op, int64_t time,
                                         Operation *last) const {
  Operation *place = op->getNextNode();
  for (Operation *next = place; next != last; next = next->getNextNode()) {
    auto action = dyn_cast<ActionOp>(next);
    if (action && startOf(action) >= time)
      return place;
    if (action || isa<PostSendOp, PostReceiveOp>(next))
      place = next->getNextNode();
  }
  return place;
}

} // namespace chimera
