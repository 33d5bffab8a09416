//===- SteadyStep.h - One step of many that overlap -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If steps overlap, no point in time separates a step from the next one. But
// each worker repeats a part of its order, its body (Schedule::Body): once a
// step it runs the same actions, on micro-batches of that step and of the next
// one. So a step of such a run is one body of each worker. On a worker, the
// step begins when the worker is done with its previous body, so workers begin
// it at different times.
//
// In the steady state all bodies take the same time. If the pattern repeats
// only every few steps, the last body of a run takes a little more or less than
// the mean (SteadyState::period).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H
#define CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// The last body of a run that is long enough for the steady state.
struct SteadyStep {
  /// The body of each worker. Micro-batches have the same numbers as in the
  /// first body of a run. The schedule has neither slots nor `bodies`.
  Schedule schedule;
  /// Starts, ends and makespan of these actions. Time 0 is the start of the
  /// worker that begins first.
  Timing timing;
  /// By worker, the end of the previous body and of its updates.
  std::vector<int64_t> begins;
  SyncAndUpdate syncAndUpdate; ///< waits and updates in the bodies (see
                               ///< `syncAndUpdateOf`)
  /// The sends and receives in the bodies. The send after a body's last action
  /// is left out, unless an update of this body follows that send.
  Occupations occupations;
};

/// One step in the steady state. Requires a valid schedule of two steps that
/// overlap.
SteadyStep steadyStep(const Problem &problem, const Schedule &schedule);

/// A copy of `timeline` that shows `step` instead. It refers to `step` and to
/// the problem of `timeline`.
Timeline timelineOf(const Timeline &timeline, const SteadyStep &step);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_STEADYSTEP_H
