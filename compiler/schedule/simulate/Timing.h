//===- Timing.h - When the actions of a schedule run ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_TIMING_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_TIMING_H

#include "compiler/schedule/model/Schedule.h"

namespace chimera::schedule {

/// A range of time.
struct Span {
  int64_t begin = 0, end = 0;
};

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
  /// Empty unless workers share cores or actions are joined. For each action:
  /// the time at which its worker began to receive for it, the time at which
  /// its message had left the worker, and the time at which an update after it
  /// ended.
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
  /// one of these actions or messages gets shorter or, if workers share cores,
  /// an action that runs at the same time. If messages run in device order, the
  /// previous action may have sent another message, for which the message had
  /// to wait. Empty if the schedule does not end.
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

/// The time for which a worker sends or receives one message. A send follows
/// the action that produces the message. A receive precedes the action that
/// waits for the message.
struct Occupation : Span {
  int32_t index; ///< of the action at this end, in its worker's order
  int32_t peer;  ///< the worker at the other end
  bool isSend;
};

/// By worker, in the order of its actions.
using Occupations = std::vector<std::vector<Occupation>>;

/// For each worker, the total time for which messages occupy it.
std::vector<int64_t> totalsOf(const Occupations &occupations);

/// All actions, sorted by start and then by worker. Costs are positive, so an
/// action starts after all of its dependencies have started, and this order
/// respects every dependency.
std::vector<ActionRef> inOrderOfStarts(const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_TIMING_H
