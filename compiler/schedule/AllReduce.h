//===- AllReduce.h - When all-reduces run, and what they cost ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of each stage is summed over all its replicas before the step
// ends; that of parameters which first and last stage both hold is one sum over
// the replicas of both, apart from the rest. An all-reduce can start on a
// worker once the last action there that adds to the gradient is done, and goes
// on while the worker computes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_ALLREDUCE_H
#define CHIMERA_COMPILER_SCHEDULE_ALLREDUCE_H

#include "compiler/schedule/Simulate.h"

#include <optional>

namespace chimera::schedule {

/// All policies, from the one that overlaps least.
struct NamedPolicy {
  const char *name;
  AllReducePolicy policy;
};
inline constexpr NamedPolicy kPolicies[] = {
    {"lazy", AllReducePolicy::Lazy},
    {"eager_opt", AllReducePolicy::EagerOpt},
    {"eager", AllReducePolicy::Eager}};

/// The idle time of a worker behind each of its actions, up to the end of its
/// last one, in the shape of Schedule::workers. Requires that `timing`, of
/// `schedule`, is complete.
std::vector<std::vector<int64_t>> idleBehind(const Schedule &schedule,
                                             const Timing &timing);

/// Whether a gradient is summed over several workers, or copies of them.
bool hasAllReduces(const Problem &problem);

/// A gradient, cut into buckets that are reduced each by itself.
struct Buckets {
  int64_t count;
  int64_t each; ///< bytes of all but the last
  int64_t last; ///< bytes of the last
};

/// How a gradient of `bytes` is cut into buckets of at most `most` bytes, of a
/// multiple of 8: elements have up to 8 bytes and stay whole. One bucket where
/// `most` is 0; else it is at least 8.
Buckets bucketsOf(int64_t bytes, int64_t most);

/// The all-reduce of a gradient over its replicas.
struct StageReduce {
  /// What a worker adds to the gradient.
  struct Part {
    int32_t worker;
    int32_t last; ///< of its actions, the last one that does
    bool isIdle;  ///< the worker is for some time, behind that
  };
  std::optional<int32_t> stage; ///< none: of what first and last stage share
  int64_t bytes;                ///< of the sum
  /// All-reduces that it takes; 1 where a worker has several replicas of the
  /// stage, which share the whole sum.
  int64_t buckets;
  std::vector<Part> parts; ///< by worker, ascending

  std::vector<int32_t> workers() const {
    std::vector<int32_t> all;
    for (const Part &part : parts)
      all.push_back(part.worker);
    return all;
  }
};

/// Those of all stages, and of what is tied, in the order in which their sums
/// are complete: by the start, then the worker, of the last action that adds to
/// one. Requires a valid schedule of one step with a flush, and its complete
/// timing.
std::vector<StageReduce> stageReduces(const Problem &problem,
                                      const Schedule &schedule,
                                      const Timing &timing);

/// An all-reduce of `bytes` over `replicas` r, by Rabenseifner's algorithm: 2
/// log2(r) alpha, the logarithm rounded up, and 2 (r-1)/r beta for each byte,
/// in whole units of time; by doubling log2(r) of both. In several buckets one
/// after another alpha comes for each of them. The most that a number holds
/// where it is more.
int64_t
allReduceTime(const MessageTime &message, int64_t replicas, int64_t bytes,
              int64_t buckets = 1,
              AllReduceAlgorithm algorithm = AllReduceAlgorithm::Rabenseifner);

/// How many replicas are summed of what `parts` workers hold: those of all
/// copies.
inline int64_t replicasOf(const Workload &workload, int64_t parts) {
  return parts * workload.width;
}

/// An all-reduce of `bytes` over `replicas` on `links`, where a message takes
/// what any does until its receiver has it, or `allReduceMessage`; and
/// `allReduceEnds`.
int64_t allReduceTime(const LinkClass &links, AllReduceAlgorithm algorithm,
                      int64_t replicas, int64_t bytes, int64_t buckets);

/// The same over the replicas that `workers`, one or more, hold in all copies,
/// on the links that join them.
int64_t allReduceTime(const Workload &workload,
                      std::span<const int32_t> workers, int64_t bytes,
                      int64_t buckets);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_ALLREDUCE_H
