//===- SteadyState.h - The steady state of steps that overlap ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEADYSTATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEADYSTATE_H

#include "compiler/schedule/model/Schedule.h"

namespace chimera::schedule {

/// The time of a step after the start of the run, when the times of steps
/// repeat.
struct SteadyState {
  double period;      ///< time from one step to the next
  double bubbleRatio; ///< idle share of the period, over all workers
  int32_t steps; ///< number of steps of a run whose last body is in the steady
                 ///< state
};

/// The steady state of steps that overlap. Simulates longer and longer runs,
/// until the last body repeats an earlier one: all its actions start later by
/// the same time. The period is then the mean time per body between the two. If
/// this would need a run of more than some millions of actions, the period is
/// the mean over the later half of the bodies. A period below a lower bound
/// (minStepTime, busiestChannel) is raised to the bound. Requires a valid
/// schedule of two steps that overlap.
SteadyState steadyState(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEADYSTATE_H
