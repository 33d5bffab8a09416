//===- Simulate.h - The questions to the simulation -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATE_H

#include "compiler/schedule/simulate/ReceiveWindows.h"
#include "compiler/schedule/simulate/SyncAndUpdate.h"

namespace chimera::schedule {

struct SimulateOptions {
  /// The time at which each worker begins. Empty: all begin at 0.
  std::span<const int64_t> begins = {};
  /// If set, the flight of a message begins when it has been sent and its
  /// receive has been posted. If a channel has window k, its first k receives
  /// are posted at time 0. Each later receive is posted when the message k
  /// places earlier has been received.
  const ReceiveWindows *windows = nullptr;
  /// If set, each device runs its messages one at a time, as NCCL does
  /// (DeviceOperations.h). Windows have no effect then.
  bool inDeviceOrder = false;
  /// If false, idle times, peaks and the critical path are not computed.
  bool hasTotals = true;
};

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
/// If steps overlap, updates take time after actions (StepGraph.h). If workers
/// share cores, all work takes longer (Clock.h); otherwise the simulation is
/// linear in the number of actions. Requires that every action in the schedule
/// belongs to the problem, is there once, and is on its worker.
Timing simulate(const Problem &problem, const Schedule &schedule,
                const SimulateOptions &options = {});

/// The timing according to the schedule's slots: every action takes one slot
/// and messages take no time. The critical path is not computed. Requires
/// schedule.hasSlots().
Timing slotTiming(const Problem &problem, const Schedule &schedule);

/// All sends and receives that take time. Requires that `timing` is complete
/// and is the result of `simulate` for `problem` and `schedule`.
Occupations messageOccupationsOf(const Problem &problem,
                                 const Schedule &schedule,
                                 const Timing &timing);

/// The all-reduces and updates of a step whose actions have these times. If
/// workers share cores, all workers are assumed to update at the same time. If
/// steps overlap, `allReduces` stays empty, because an all-reduce is in
/// progress exactly while a worker waits for it: `work` has these waits.
SyncAndUpdate syncAndUpdateOf(const Problem &problem, const Schedule &schedule,
                              const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_SIMULATE_H
