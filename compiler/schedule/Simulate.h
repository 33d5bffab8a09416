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

/// An action by its place in Schedule::workers.
struct Turn {
  int32_t worker;
  int32_t index;

  bool operator==(const Turn &) const = default;
};

struct Timing {
  /// Start of each action, in the shape of Schedule::workers. -1 for an action
  /// that never starts.
  std::vector<std::vector<int64_t>> starts;
  /// The end of each that starts. Between both the action takes its cost, or
  /// longer where its worker shares cores.
  std::vector<std::vector<int64_t>> ends;
  /// If workers share cores, when each began to receive for an action, when
  /// what that sends had left it, and when an update after it had ended; empty
  /// if all of these take the times that the problem says.
  std::vector<std::vector<int64_t>> receiveBegins, sendEnds, updateEnds;
  /// From time 0 to the end of the last action.
  int64_t makespan = 0;
  /// Time in which each worker runs something, and the rest of the makespan.
  std::vector<int64_t> busy, idle;
  /// Time in which messages occupy each worker, and where steps overlap
  /// updates and the all-reduces that they wait for, part of `idle`.
  std::vector<int64_t> occupied;
  /// From the first start to the last end on each worker, its receives and
  /// sends included.
  std::vector<int64_t> span;
  /// The most micro-batches of which each worker holds activations at once,
  /// over its stages: one more at the start of a forward (of its recompute
  /// where there is one), one less at the end of its backward (of its weight
  /// gradient where the backward is split), of the last where it is in parts.
  std::vector<int32_t> peakActivations;
  /// The most bytes that each worker holds at once: see Memory.h.
  std::vector<int64_t> peakBytes;
  /// Actions that run one after another, with nothing but messages between
  /// them, from time 0 to the makespan: to end sooner, one of them has to.
  /// Empty if the schedule does not end, and where workers share cores: then
  /// what delays an action may be all that others do meanwhile.
  std::vector<Turn> criticalPath;
  /// False if workers wait for each other for ever.
  bool complete = true;

  /// The load of the busiest worker.
  int64_t load() const;
  /// Makespan less load: the bubble where an iteration ends with a flush
  /// (GPipe, Chimera).
  int64_t flushBubble() const;
  /// Longest span less load: the bubble where the next iteration may start on
  /// each worker as soon as that is done (zero-bubble papers).
  int64_t internalBubble() const;
  /// Idle time of all workers over workers times makespan: the ratio that
  /// belongs to the flush bubble.
  double bubbleRatio() const;
};

/// All actions by start, then worker. An action starts after what it depends
/// on, since costs are positive, so this order respects every dependency.
std::vector<Turn> inOrderOfStarts(const Timing &timing);

/// Starts every action as soon as its worker is free, everything it depends on
/// is done and, from another worker, its message has arrived and been received;
/// one at a time per worker, in its order. A worker is free when what its last
/// action sends no longer occupies it, and receives a message when it is free
/// and the message there. Dependencies: a forward on the forward of the stage
/// before; a backward (or input gradient) on its own forward and on the
/// backward of the stage after; a weight gradient on its input gradient; a
/// recompute on its forward and, where it is fused, on what its backward
/// depends on.
/// Where steps overlap, updates take their time behind actions (Steps.h); where
/// workers share cores, all of that takes longer (SharedCores.h).
/// Linear in the number of actions unless they do. Requires that every action
/// is known to the problem and stands once, on its worker.
Timing simulate(const Problem &problem, const Schedule &schedule);

/// The same where each worker begins at a time of its own. Without idle times,
/// peaks and a critical path.
Timing simulate(const Problem &problem, const Schedule &schedule,
                std::span<const int64_t> begins);

/// Simulates one order many times, each time with other begins: what depends on
/// problem and order alone is worked out once.
class StepSimulation {
public:
  /// Refers to both. Requires that no workers share cores.
  StepSimulation(const Problem &problem, const Schedule &schedule);
  ~StepSimulation();

  /// Where all begin at 0.
  const Timing &fromZero() const { return first; }
  /// Where each begins at a time of its own; until the next run.
  const Timing &run(std::span<const int64_t> begins);
  /// How much later than from 0 everything runs where workers begin at
  /// `begins`, if that is the same for all: those whose first action waits for
  /// nothing begin together, and the others before they have to.
  std::optional<int64_t> delayOf(std::span<const int64_t> begins) const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
  Timing first;
};

/// Numbers of messages, by the number of the action that makes them, and how
/// many receives may be outstanding on each channel: see Windows.h, which makes
/// it.
struct MessageNumbers {
  std::vector<int32_t> channel; ///< -1 for an action that sends nothing
  std::vector<int32_t> number;  ///< on its channel
  std::vector<int32_t> windows; ///< of each channel
};

/// The same with receives posted in windows: a message is on its way when it
/// has been sent and its receive posted, at time 0 or when the message a window
/// before it has been received. Without a critical path.
Timing simulate(const Problem &problem, const Schedule &schedule,
                const MessageNumbers &numbers);

/// The timing that the schedule's slots state, every action one slot long and
/// every message free; without a critical path. Requires schedule.hasSlots().
Timing slotTiming(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_H
