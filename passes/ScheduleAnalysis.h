//===- ScheduleAnalysis.h - What passes know of an order --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULEANALYSIS_H
#define CHIMERA_PASSES_SCHEDULEANALYSIS_H

#include "passes/Bridge.h"

#include "compiler/schedule/Simulate.h"

namespace chimera {

/// A pipeline's problem, its order and when that runs, each made when it is
/// first asked for: an MLIR analysis of the pipeline, which passes share. A
/// pass that keeps the order of actions on every worker preserves it. Passes
/// that verify make their own, of what is there then.
class ScheduleAnalysis {
public:
  explicit ScheduleAnalysis(mlir::Operation *pipeline)
      : pipeline(mlir::cast<PipelineOp>(pipeline)) {}

  /// As scheduledProblemOf has it; null where that fails, whose diagnostic
  /// comes the first time.
  const ScheduledProblem *get();

  /// What the schedule library finds wrong with it. Requires get().
  const std::vector<schedule::Violation> &violations();

  /// The same as get() of a valid order; null, with a diagnostic, of another.
  const ScheduledProblem *verified();

  /// The simulation of the order. Requires verified().
  const schedule::Timing &timing();

private:
  PipelineOp pipeline;
  std::optional<mlir::FailureOr<ScheduledProblem>> of;
  std::optional<std::vector<schedule::Violation>> found;
  std::optional<schedule::Timing> simulated;
};

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULEANALYSIS_H
