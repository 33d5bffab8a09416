//===- Simulate.h - When every action runs ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

struct Timing {
  /// Start of each action, in the shape of Schedule::workers. -1 for an action
  /// that never starts.
  std::vector<std::vector<int64_t>> starts;
  /// From time 0 to the end of the last action.
  int64_t makespan = 0;
  /// Time within the makespan in which each worker runs nothing.
  std::vector<int64_t> idle;
  /// The most micro-batches whose activations each worker holds at once, over
  /// its stages: one more at the start of a forward, one less at the end of its
  /// backward (of its weight gradient where the backward is split).
  std::vector<int32_t> peakActivations;
  /// False if workers wait for each other for ever.
  bool complete = true;

  /// Idle time of all workers over workers times makespan.
  double bubbleRatio() const;
};

/// Starts every action as soon as its worker is free, everything it depends on
/// is done and, from another worker, `latency` has passed; one at a time per
/// worker, in its order. Dependencies: a forward on the forward of the stage
/// before; a backward (or input gradient) on its own forward and on the
/// backward of the stage after; a weight gradient on its input gradient.
/// Linear in the number of actions. Requires that every action is known to the
/// problem and stands once.
Timing simulate(const Problem &problem, const Schedule &schedule);

/// The timing that the schedule's slots state, every action one slot long.
/// Requires schedule.hasSlots().
Timing slotTiming(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
