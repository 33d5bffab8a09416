//===- ScheduleAnalysis.h - A pipeline's order and its times ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_SCHEDULEANALYSIS_H
#define CHIMERA_PASSES_SCHEDULE_SCHEDULEANALYSIS_H

#include "compiler/schedule/simulate/Timing.h"
#include "passes/schedule/ScheduledProblem.h"

namespace chimera {

/// A pipeline's problem, its order and the simulation of that order, as an MLIR
/// analysis that passes share. Each of the three is computed when it is first
/// needed. A pass preserves this analysis if it does not change the order of
/// actions on any worker. Verifier passes do not use the shared analysis: they
/// compute their own from the current IR.
class ScheduleAnalysis {
public:
  explicit ScheduleAnalysis(mlir::Operation *pipeline)
      : pipeline(mlir::cast<PipelineOp>(pipeline)) {}

  /// The result of scheduledProblemOf, or null if it fails. Only the first call
  /// emits the diagnostic.
  const ScheduledProblem *get();

  /// The violations that the schedule library finds. Requires that get() is not
  /// null.
  const std::vector<schedule::Violation> &violations();

  /// The result of get() if the order is valid; else null, with a diagnostic.
  const ScheduledProblem *verified();

  /// The simulation of the order. Requires that verified() is not null.
  const schedule::Timing &timing();

private:
  PipelineOp pipeline;
  std::optional<mlir::FailureOr<ScheduledProblem>> of;
  std::optional<std::vector<schedule::Violation>> found;
  std::optional<schedule::Timing> simulated;
};

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_SCHEDULEANALYSIS_H
