//===- ScheduledProblem.h - A problem and its order -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_SCHEDULEDPROBLEM_H
#define CHIMERA_PASSES_SCHEDULE_SCHEDULEDPROBLEM_H

#include "passes/describe/Bridge.h"

namespace chimera {

/// A pipeline's problem and its order. The order comes from the action ops. As
/// long as these have no worker, it comes from the chimera.order ops. The
/// problem has recomputation only if the order has a recompute.
struct ScheduledProblem {
  schedule::Problem problem;
  schedule::Schedule schedule;
};

/// The problem and the order of `pipeline`. Fails with a diagnostic if
/// problemOf, readOrders or scheduleOf fails, or if the schedule library
/// refuses the problem.
mlir::FailureOr<ScheduledProblem> scheduledProblemOf(PipelineOp pipeline);

/// Fails with one diagnostic if a worker exceeds its memory cap by the schedule
/// library's model. The program allocates at least as much as this model says.
/// Requires a valid schedule.
mlir::LogicalResult checkCaps(PipelineOp pipeline, const ScheduledProblem &of);

/// The prefix of errors about an invalid order.
inline constexpr char kInvalid[] = "expected a valid schedule: ";

/// Fails with a diagnostic if the times are too large to add up or the order is
/// invalid.
mlir::LogicalResult verifySchedule(PipelineOp pipeline,
                                   const ScheduledProblem &of);

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_SCHEDULEDPROBLEM_H
