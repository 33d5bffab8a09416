//===- SyncAndUpdate.h - All-reduces and updates of a step ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient synchronisation and optimizer phase of a step. If a flush ends
// the step, each worker waits after its actions for the all-reduces of its
// gradients, one after another. The worker updates the weights of a stage when
// the all-reduce of their gradient has ended. If steps overlap, the worker
// waits for a gradient's all-reduce and updates the weights directly after the
// last action that adds to that gradient (StepGraph.h).
//
// If gradients are clipped by their norm, one more all-reduce, of the norm,
// follows the all-reduces of all gradients. All workers take part in it, and no
// worker updates weights before it.
//
// An all-reduce keeps no worker busy, so actions run while it is in progress.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_SYNCANDUPDATE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_SYNCANDUPDATE_H

#include "compiler/schedule/simulate/AllReduce.h"

namespace chimera::schedule {

/// The all-reduces and updates of a step, with times: after the actions if a
/// flush ends the step, otherwise between the actions.
struct SyncAndUpdate {
  /// The all-reduce of a stage's gradient, of the parameters that the first and
  /// the last stage share, or of the norm. The all-reduce begins when all its
  /// workers have started it and have ended their previous all-reduces.
  struct AllReduce : Span {
    std::optional<int32_t> stage;
    bool isNorm = false;
    std::vector<int32_t> workers;
  };
  /// A wait for an all-reduce, or the update of a replica's weights.
  struct Work : Span {
    std::optional<int32_t> stage;
    std::optional<int32_t> pipeline; ///< only for an update
    bool isNorm = false;             ///< a wait for the all-reduce of the norm
    bool isUpdate() const { return pipeline.has_value(); }
  };
  /// In the order of gradientReduces; the all-reduce of the norm is last.
  std::vector<AllReduce> allReduces;
  /// For each worker, in its order, the waits and updates that take time.
  std::vector<std::vector<Work>> work;
  /// For each worker, the time at which it has ended its actions, and the time
  /// at which it has ended its step.
  std::vector<int64_t> actionEnds, ends;

  /// When the last worker has ended its step.
  int64_t end() const;
};

/// The all-reduces and updates of a step with a flush, without times: see
/// syncAndUpdateOrderOf.
struct SyncAndUpdateOrder {
  /// An all-reduce. It begins when all its inputs are known. Each worker has
  /// one or two: it has ended the action `after`, and its previous all-reduce
  /// has ended. If all-reduces block (Network::blockingAllReduces), the second
  /// is that the worker has ended the updates before this all-reduce.
  struct AllReduce {
    std::optional<int32_t> stage;
    bool isNorm = false;
    std::vector<int32_t> workers;
    std::vector<int32_t> after; ///< for each worker, the index of an action
    int64_t time = 0;
    int32_t inputs = 0;        ///< number of inputs
    std::vector<int32_t> next; ///< the next all-reduces of its workers
  };
  /// An all-reduce that a worker starts after the action `after`.
  struct Start {
    int32_t after, allReduce;
  };
  /// A wait or an update of a worker. If `pipeline` is set, it is the update of
  /// the stage's weights in that pipeline. Otherwise it is a wait for an
  /// all-reduce.
  struct WaitOrUpdate {
    size_t allReduce; ///< index in `allReduces`; for an update, of the
                      ///< all-reduce after which it begins
    std::optional<int32_t> stage;
    std::optional<int32_t> pipeline;
    int64_t update = 0; ///< time of the update
  };
  /// In the order of gradientReduces; the all-reduce of the norm is last.
  std::vector<AllReduce> allReduces;
  std::vector<std::vector<Start>> starts;       ///< of each worker, by `after`
  std::vector<std::vector<WaitOrUpdate>> items; ///< of each worker, in order
};

/// The order for the problem's policy and for `reduces`, the all-reduces of the
/// schedule. The same workers add to all buckets of a gradient, and all buckets
/// are ready at the same time. So the buckets of a gradient are one all-reduce
/// here, with the sum of their times.
SyncAndUpdateOrder
syncAndUpdateOrderOf(const Problem &problem, const Schedule &schedule,
                     const std::vector<GradientReduce> &reduces);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_SYNCANDUPDATE_H
