//===- AllReduce.h - Start and time of all-reduces --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The all-reduces of a step. The gradient of each stage is summed over all
// replicas of the stage before the step ends. Parameters that the first and the
// last stage share (tied parameters) have a separate all-reduce over the
// replicas of both stages. A worker can start an all-reduce after its last
// action that adds to the gradient. The worker computes while the all-reduce is
// in progress.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCE_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCE_H

#include "compiler/schedule/model/AllReduceTime.h"
#include "compiler/schedule/simulate/Timing.h"

namespace chimera::schedule {

/// All policies, sorted from the least overlap with computation to the most.
struct NamedPolicy {
  const char *name;
  AllReducePolicy policy;
};
inline constexpr NamedPolicy kPolicies[] = {
    {"lazy", AllReducePolicy::Lazy},
    {"eager_opt", AllReducePolicy::EagerOpt},
    {"eager", AllReducePolicy::Eager}};

/// For each action, the idle time of its worker between the end of this action
/// and the start of the worker's last action. In the shape of
/// Schedule::workers. Requires that `timing` is a complete timing of
/// `schedule`.
std::vector<std::vector<int64_t>> idleAfter(const Schedule &schedule,
                                            const Timing &timing);

/// True if some gradient, or the norm of all gradients, is summed over several
/// workers or copies.
bool hasAllReduces(const Problem &problem);

/// True if all-reduces or updates take time, or if all workers wait for the
/// norm of all gradients.
bool hasSyncAndUpdate(const Problem &problem);

/// The all-reduce of a gradient over its replicas.
struct GradientReduce {
  /// A worker that adds to the gradient.
  struct Contribution {
    int32_t worker;
    int32_t lastAction; ///< index of its last action that adds to the gradient
    bool isIdle; ///< the worker is idle at some time between `lastAction` and
                 ///< its last action of all
  };
  std::optional<int32_t> stage; ///< none: parameters that the first and last
                                ///< stage share
  int64_t bytes;                ///< size of the gradient
  /// Number of buckets, each with its own all-reduce. If a worker has several
  /// replicas of the stage, these replicas add to one sum, which is not cut:
  /// the number is 1.
  int64_t buckets;
  std::vector<Contribution> contributions; ///< by worker, ascending

  std::vector<int32_t> workers() const {
    std::vector<int32_t> all;
    for (const Contribution &contribution : contributions)
      all.push_back(contribution.worker);
    return all;
  }
};

/// The all-reduces of all stages and of the tied parameters, sorted by the
/// start of the last action that adds to the gradient, then by the worker of
/// that action. Requires a valid schedule of one step with a flush, and a
/// complete timing of it.
std::vector<GradientReduce> gradientReduces(const Problem &problem,
                                            const Schedule &schedule,
                                            const Timing &timing);

/// The number of replicas in all data-parallel copies if `parts` workers of
/// each copy have a replica.
inline int64_t replicasOf(const Workload &workload, int64_t parts) {
  return parts * workload.width;
}

/// The time of an all-reduce over `workers` (one or more) of all data-parallel
/// copies, on the links between them.
int64_t allReduceTime(const Workload &workload,
                      std::span<const int32_t> workers, int64_t bytes,
                      int64_t buckets);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_ALLREDUCE_H
