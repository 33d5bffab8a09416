//===- StepTime.h - What a whole step takes ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is not over with its last action. Where a flush ends it, each worker
// waits behind its actions for the all-reduces of its gradients, one after
// another, and updates the weights of each when its all-reduce has ended; then
// the worker begins the next step, whatever the other workers still do. Where
// no flush ends a step, a worker reduces and updates behind the last action
// that adds to a gradient (Steps.h).
//
// All-reduces take the link's time, not the workers': actions run meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_STEPTIME_H
#define CHIMERA_COMPILER_SCHEDULE_STEPTIME_H

#include "compiler/schedule/AllReduce.h"

namespace chimera::schedule {

/// What workers do besides actions: behind them where a flush ends the step,
/// else among them.
struct Tail {
  struct Span {
    int64_t begin = 0, end = 0;
  };
  /// The all-reduce of a stage's gradient, or of what first and last stage
  /// share, is under way, from when all its workers have started it and ended
  /// those before.
  struct AllReduce : Span {
    std::optional<int32_t> stage;
    std::vector<int32_t> workers;
  };
  /// A worker waits for an all-reduce, or updates a replica's weights.
  struct Work : Span {
    std::optional<int32_t> stage;
    std::optional<int32_t> pipeline; ///< of an update
    bool isUpdate() const { return pipeline.has_value(); }
  };
  std::vector<AllReduce> allReduces; ///< in the order of the StageReduces
  /// Of each worker, in its order, what takes time.
  std::vector<std::vector<Work>> work;
  /// When each worker is done with its actions, and with its step.
  std::vector<int64_t> computed, ends;

  /// When the last worker is done.
  int64_t end() const;
};

/// Of the actions at `timing`, for the problem's policy and the order's
/// `reduces`. All buckets of a gradient have the same parts, ready at the same
/// time, so they count as one all-reduce that takes their times together.
Tail tailOf(const Problem &problem, const Schedule &schedule,
            const Timing &timing, const std::vector<StageReduce> &reduces);

/// The same where steps overlap: a worker waits for the all-reduce of a
/// gradient and updates behind the last action that adds to it and what that
/// sends. Without `allReduces`: each is waited for while it is under way.
Tail tailAmong(const Problem &problem, const Schedule &schedule,
               const Timing &timing);

/// What a step takes on average once many run one after another.
struct StepTime {
  double total = 0;
  double actions = 0;   ///< where all-reduces and updates take no time
  double allReduce = 0; ///< what all-reduces add to that, un-overlapped
  double update = 0;    ///< what updates add to both
};

/// Follows steps until what is between the workers repeats, or some dozens. The
/// policy is of no account where steps overlap: then every all-reduce is
/// awaited at once. Requires a valid schedule of one step with a flush, else of
/// two.
StepTime stepTime(const Problem &problem, const Schedule &schedule);

/// The same, the total alone.
double stepPeriod(const Problem &problem, const Schedule &schedule);

/// True if all-reduces or updates take time.
bool hasTail(const Problem &problem);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_STEPTIME_H
