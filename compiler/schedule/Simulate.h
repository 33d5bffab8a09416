//===- Simulate.h - When every action runs ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_H

#include "compiler/schedule/Schedule.h"

#include <memory>
#include <optional>
#include <span>

namespace chimera::schedule {

/// An action by its position in Schedule::workers.
struct ActionRef {
  int32_t worker;
  int32_t index;

  bool operator==(const ActionRef &) const = default;
};

/// When the actions of a schedule run, and totals and peaks that are computed
/// from these times.
struct Timing {
  /// Start of each action, in the shape of Schedule::workers. -1 for an action
  /// that never starts.
  std::vector<std::vector<int64_t>> starts;
  /// End of each action that starts. From start to end an action takes its
  /// cost, or longer if its worker shares cores.
  std::vector<std::vector<int64_t>> ends;
  /// Empty unless workers share cores. For each action: the time at which its
  /// worker began to receive for it, the time at which its message had left the
  /// worker, and the time at which an update after it ended.
  std::vector<std::vector<int64_t>> receiveBegins, sendEnds, updateEnds;
  /// The time from 0 to the end of the last action.
  int64_t makespan = 0;
  /// Time in which each worker runs actions, and the rest of the makespan.
  std::vector<int64_t> busy, idle;
  /// Part of `idle`: time in which each worker sends or receives and, if steps
  /// overlap, in which it waits for all-reduces or updates weights.
  std::vector<int64_t> occupied;
  /// On each worker, the time from the start of the first action to the end of
  /// the last, including the receive before the first action and, after the
  /// last action, its send and update.
  std::vector<int64_t> spans;
  /// For each worker, the largest number of micro-batches whose activations it
  /// has at once, summed over its stages. The number grows at the start of a
  /// forward, or of its recompute if it has one. It shrinks at the end of a
  /// backward, or of a weight gradient if the backward is split. For a backward
  /// in parts, it shrinks at the end of the last part.
  std::vector<int32_t> peakActivations;
  /// The most bytes that each worker has at once: see Memory.h.
  std::vector<int64_t> peakBytes;
  /// A chain of actions from time 0 to the makespan. Each action starts at the
  /// time at which the previous action of the chain has ended and, if it is on
  /// another worker, its message has arrived. The makespan can shrink only if
  /// one of these actions or messages gets shorter. Empty if the schedule does
  /// not end. Also empty if workers share cores, because then an action may be
  /// delayed by all actions that run at the same time.
  std::vector<ActionRef> criticalPath;
  /// False if workers wait for each other forever.
  bool complete = true;

  /// The load: the busy time of the busiest worker.
  int64_t maxLoad() const;
  /// Makespan minus load: the bubble if a flush ends each step (GPipe,
  /// Chimera).
  int64_t flushBubble() const;
  /// Longest span minus load: the bubble if each worker may start the next step
  /// as soon as it has finished this one (zero-bubble papers).
  int64_t internalBubble() const;
  /// Idle time of all workers, divided by the makespan times the number of
  /// workers. This is the ratio that belongs to the flush bubble.
  double bubbleRatio() const;
};

/// All actions, sorted by start and then by worker. Costs are positive, so an
/// action starts after all of its dependencies have started, and this order
/// respects every dependency.
std::vector<ActionRef> inOrderOfStarts(const Timing &timing);

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
/// If steps overlap, updates take time after actions (Steps.h). If workers
/// share cores, all work takes longer (SharedCores.h); otherwise the simulation
/// is linear in the number of actions. Requires that every action in the
/// schedule belongs to the problem, is there once, and is on its worker.
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

/// The channel of each message, its number on that channel, and the window of
/// each channel: how many receives may be outstanding (Windows.h). A message is
/// found by the id of the action that produces it.
struct MessageNumbers {
  std::vector<int32_t> channel; ///< -1 for an action without a message
  std::vector<int32_t> number;  ///< of the message on its channel
  std::vector<int32_t> windows; ///< of each channel
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
