//===- Simulate.h - The simulation of a schedule ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_H

#include "compiler/schedule/Messages.h"
#include "compiler/schedule/Timing.h"

#include <memory>

namespace chimera::schedule {

/// Simulates the schedule: each worker runs its actions in order, each as soon
/// as possible. An action starts when
///
/// - its worker has ended its previous action and sent the message of that
///   action,
/// - its dependencies have ended, and
/// - the message from a dependency on another worker has arrived, and its
///   worker has then received it.
///
/// A forward depends on the forward of the stage before. A backward or input
/// gradient depends on its own forward and on the backward of the stage after.
/// A weight gradient depends on its input gradient. A recompute depends on its
/// forward and, if it is fused, on the dependencies of its backward.
///
/// If steps overlap, updates take time after actions (UpdatesAfter.h). If
/// workers share cores, all work takes longer (SharedCores.h); otherwise the
/// simulation is linear in the number of actions. Requires that every action in
/// the schedule belongs to the problem, is there once, and is on its worker.
Timing simulate(const Problem &problem, const Schedule &schedule);

/// Like the first `simulate`, but each worker begins at its own time in
/// `begins`. Idle times, peaks and critical path are not computed.
Timing simulate(const Problem &problem, const Schedule &schedule,
                std::span<const int64_t> begins);

/// Simulates one order several times with different begin times of workers. All
/// that depends only on problem and order is computed once.
class StepSimulation {
public:
  /// Keeps references to `problem` and `schedule`. Requires that no workers
  /// share cores.
  StepSimulation(const Problem &problem, const Schedule &schedule);
  ~StepSimulation();

  /// The timing if all workers begin at 0.
  const Timing &fromZero() const { return first; }
  /// The timing if each worker begins at its own time in `begins`. The
  /// reference is valid until the next run.
  const Timing &run(std::span<const int64_t> begins);
  /// The delay of all actions relative to fromZero() if workers begin at
  /// `begins`, or nothing if the delays of actions differ. All delays are equal
  /// under two conditions. First, all workers whose first action depends on no
  /// other worker begin with the same delay. Second, every other worker begins
  /// early enough for its first action to start with that delay.
  std::optional<int64_t> delayOf(std::span<const int64_t> begins) const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
  Timing first;
};

/// Like the first `simulate`, but with windows of receives. The flight of a
/// message begins when it has been sent and its receive has been posted. If a
/// channel has window k, its first k receives are posted at time 0. Each later
/// receive is posted when the message k places earlier has been received. The
/// critical path is not computed.
Timing simulate(const Problem &problem, const Schedule &schedule,
                const MessageNumbers &numbers);

/// The timing according to the schedule's slots: every action takes one slot
/// and messages take no time. The critical path is not computed. Requires
/// schedule.hasSlots().
Timing slotTiming(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
