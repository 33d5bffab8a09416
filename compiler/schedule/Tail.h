//===- Tail.h - What workers do besides actions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a flush ends a step, each worker waits behind its actions for the
// all-reduces of its gradients, one after another, and updates the weights of
// each when its all-reduce has ended. Where no flush ends a step, a worker
// reduces and updates behind the last action that adds to a gradient (Steps.h).
//
// All-reduces take the link's time, not the workers': actions run meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TAIL_H
#define CHIMERA_COMPILER_SCHEDULE_TAIL_H

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

/// What follows the actions of a step with a flush, in its order and without
/// times: see tailOrderOf.
struct TailOrder {
  /// An all-reduce begins when all its workers have ended these actions of
  /// theirs and their all-reduces before.
  struct AllReduce {
    std::optional<int32_t> stage;
    std::vector<int32_t> workers;
    std::vector<int32_t> after; ///< of each worker, an action of its order
    int64_t time;
  };
  /// A worker waits for an all-reduce or, where there is a pipeline, updates
  /// the stage's weights of that.
  struct Item {
    size_t allReduce; ///< by number: of an update, the last of its stage
    std::optional<int32_t> stage;
    std::optional<int32_t> pipeline;
    int64_t update = 0; ///< its time
  };
  std::vector<AllReduce> allReduces;    ///< in the order of the StageReduces
  std::vector<std::vector<Item>> items; ///< of each worker, one after another
};

/// For the problem's policy and the order's `reduces`. All buckets of a
/// gradient have the same parts, ready at the same time, so they count as one
/// all-reduce that takes their times together.
TailOrder tailOrderOf(const Problem &problem, const Schedule &schedule,
                      const std::vector<StageReduce> &reduces);

/// The same behind the actions at `timing`, from which the order follows too
/// unless it is given. Where workers share cores, all update at the same time.
/// Where all-reduces block, each begins behind the updates before it too.
Tail tailOf(const Problem &problem, const TailOrder &order,
            const Timing &timing);
Tail tailOf(const Problem &problem, const Schedule &schedule,
            const Timing &timing);

/// The same where steps overlap: a worker waits for the all-reduce of a
/// gradient and updates behind the last action that adds to it and what that
/// sends. Without `allReduces`: each is waited for while it is under way.
Tail tailAmong(const Problem &problem, const Schedule &schedule,
               const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TAIL_H
