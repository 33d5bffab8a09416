//===- Steps.h - Steps that overlap -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where no flush ends a step, the next begins before it is over, and a worker
// keeps several versions of its weights: a backward reads the version that its
// forward read. Version v is the weights after v updates.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_STEPS_H
#define CHIMERA_COMPILER_SCHEDULE_STEPS_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// The version that forward and backward of `microBatch` read on `stage`: with
/// updates after each micro-batch max(0, m - (D-1-s)), with one a step that of
/// the step before its own, and 0 with a flush, where it counts from the step.
int64_t weightVersion(const Problem &problem, int32_t stage,
                      int64_t microBatch);

/// How many versions of a stage's weights its worker holds: D - s, 2, or 1.
int32_t weightVersions(const Problem &problem, int32_t stage);

/// The order of `steps` steps from that of two: what fills the pipeline, the
/// body of each step but the last, and the last step; the bodies only for two
/// steps. It is one of `problem` with as many steps. Requires a valid schedule
/// of two steps with bodies, and at least 2 steps.
Schedule unrollSteps(const Problem &problem, const Schedule &schedule,
                     int32_t steps);

/// What follows an action on its worker where steps overlap: behind the last
/// that adds to a gradient the worker waits for the gradient's all-reduce over
/// the copies, then updates the weights.
struct UpdateBehind {
  int64_t wait = 0, update = 0;

  int64_t time() const { return wait + update; }
};

/// In the shape of Schedule::workers; empty where nothing follows any action or
/// a flush ends each step.
std::vector<std::vector<UpdateBehind>> updatesBehind(const Problem &problem,
                                                     const Schedule &schedule);

/// What a step takes once all are alike.
struct SteadyState {
  double period;      ///< time from a step to the next
  double bubbleRatio; ///< idle share of it, over all workers
  int32_t steps;      ///< that a run had whose last body shows it
};

/// The steady state of steps that overlap: the mean over as many as it takes
/// until every action starts as it did that many steps before, only later;
/// where that takes more than some millions of actions, the mean over the later
/// half of them. Requires a valid schedule of two steps that overlap.
SteadyState steadyState(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_STEPS_H
