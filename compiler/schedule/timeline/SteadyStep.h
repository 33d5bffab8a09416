//===- SteadyStep.h - One step of many that overlap -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where no flush ends a step, no moment separates it from the next. What
// repeats is the body of each worker (Steps.h): once a step it runs the same
// actions, of the micro-batches of that step and the next. So a step of such a
// run is a body of each worker, from when that worker was done with the body
// before. Workers begin theirs at different times, and all bodies take the same
// time once all steps are alike. Where a step is like the one before the last
// only, or an earlier one, the last body of a run takes a little more or less
// than the mean (SteadyState::period).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H
#define CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// The last body of a run that is long enough for the steady state.
struct SteadyStep {
  /// Of each worker its body; micro-batches have the numbers that they have in
  /// the first body of a run. No slots and no bodies.
  Schedule schedule;
  /// Starts, ends and makespan of these actions; the worker that begins first
  /// does so at 0.
  Timing timing;
  /// When each worker was done with the body before, its updates included.
  std::vector<int64_t> begins;
  Tail tail; ///< what of `tailAmong` is in the bodies
  /// Without the send of a body's last action, which takes time of the next
  /// body.
  Occupations occupations;
};

/// Requires a valid schedule of two steps that overlap.
SteadyStep steadyStep(const Problem &problem, const Schedule &schedule);

/// A timeline of `step` that otherwise is as `timeline`; refers to both.
Timeline timelineOf(const Timeline &timeline, const SteadyStep &step);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H
