//===- StepTime.h - The time of a whole step --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of a whole step: actions, gradient all-reduces and weight updates
// (SyncAndUpdate.h). A worker that has ended its part of a step begins the next
// step, even if other workers have not ended theirs.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPTIME_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPTIME_H

#include "compiler/schedule/simulate/SyncAndUpdate.h"

#include <memory>

namespace chimera::schedule {

/// The mean time of a step in a run of many steps, in ticks. It is the sum of
/// the other three fields.
struct StepTime {
  double total = 0;
  double actions = 0;   ///< if all-reduces and updates take no time
  double allReduce = 0; ///< added by all-reduces, as far as they do not overlap
  double update = 0;    ///< added by updates
};

/// Computes the mean time of a step. If a flush ends each step, simulates steps
/// until the begin times of the workers, relative to each other, repeat, or for
/// some dozens of steps. If steps overlap, uses `steadyState`. The time of a
/// step is at least the time that its workers and links need. If steps overlap,
/// the all-reduce policy has no effect, because a worker always waits for an
/// all-reduce directly after its last action that adds to the gradient.
/// Requires a valid schedule: of one step with a flush, otherwise of two steps.
StepTime stepTime(const Problem &problem, const Schedule &schedule);

class FlushedSteps;

/// StepTime::total for several policies, one after another.
class StepPeriods {
public:
  /// Keeps a copy of the problem and a reference to the schedule.
  StepPeriods(const Problem &problem, const Schedule &schedule);
  ~StepPeriods();

  double periodWith(AllReducePolicy policy);

private:
  const Schedule &schedule;
  Problem problem;
  std::unique_ptr<FlushedSteps> steps; ///< null if steps overlap
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPTIME_H
