//===- Memory.h - The memory of a worker ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory model of the schedule library. The memory of a worker is the sum
// of
//
// - Weights: the weights of every stage of every pipeline on it, in each
//   version that it keeps (Steps.h), and their optimizer state. Weights and
//   optimizer state are always live.
// - Gradient sums: a stage's sum is as large as one version of its weights
//   without StageBytes::parameterCopy. It is live from the start of the first
//   backward or weight gradient that adds to it until its update. With a flush,
//   the update is at the end of the step. Without a flush, the model releases
//   the sum at the end of the last backward that adds to it.
// - Stashes: the stash of a micro-batch on a stage is live from the start of
//   its forward to the end of its backward. If the backward is split, the stash
//   is live to the end of the input gradient, and the weight stash from the
//   start of the input gradient to the end of the weight gradient. While the
//   input gradient runs, only the larger of the two stashes counts, because the
//   action releases the stash as it fills the weight stash. If a backward has
//   parts, each part releases its share.
// - Inputs for recomputes: if a stage is recomputed, its forward keeps only its
//   input, which is a boundary of the stage before. The input is live from the
//   start of the forward to the end of the recompute, the stash only from the
//   start of the recompute.
// - Boundaries: while an action runs, the values and gradients that it reads
//   from and passes to the stages before and after. The size of each is
//   StageBytes::boundary, or its share for a part, or n times as much for a
//   forward over n micro-batches. An input that is kept for a recompute counts
//   once. Weight gradients and recomputes have no boundaries.
//
// Messages that wait to be received are not counted, because their number
// depends on the transport. A worker runs one action at a time, so its memory
// depends only on its order. At the same instant, memory is released before
// other memory is acquired.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_MEMORY_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_MEMORY_H

#include "compiler/schedule/simulate/Timing.h"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace chimera::schedule {

/// The bytes that each worker always has: weights and optimizer states.
std::vector<int64_t> residentBytes(const Problem &problem);

/// The most memory that a worker has at one time, and the most activations.
struct MemoryPeak {
  int64_t bytes = 0;
  int32_t activations = 0; ///< see Timing::peakActivations
  /// The first action at which the worker has `bytes`, or -1 if it runs no
  /// action.
  int32_t index = -1;
};

class MemoryWalk;

/// Finds the peaks of workers, one worker after another.
class MemoryPeaks {
public:
  /// Keeps a reference to `problem`.
  explicit MemoryPeaks(const Problem &problem);
  ~MemoryPeaks();

  /// The peak of a worker that always has `resident` bytes and runs `order`.
  /// Linear in the number of actions of `order`.
  MemoryPeak peakOf(std::span<const Action> order, int64_t resident);

private:
  std::unique_ptr<MemoryWalk> walk;
};

/// A worker that exceeds its memory cap. The program of this worker needs at
/// least the bytes of `peak`: it also stores waiting messages, tokens and
/// losses, which the model does not count.
struct CapExcess {
  int32_t worker;
  MemoryPeak peak;
  int32_t others; ///< number of other workers above their caps
};
/// The worker that exceeds its cap by the most bytes. None if all workers are
/// within their caps or there are no caps. Requires a valid schedule.
std::optional<CapExcess> capExcess(const Problem &problem,
                                   const Schedule &schedule);
/// ", and 2 other workers above the cap" for `others` = 2. Empty for 0.
std::string othersAbove(int64_t others);
/// "at least 814 bytes on worker 0 at forward of stage 0, micro-batch 7, and 1
/// other worker above the cap".
std::string describe(const CapExcess &excess, const Problem &problem,
                     const Schedule &schedule);

/// The bytes that a worker has from `time` until the time of the next sample.
struct MemorySample {
  int64_t time;
  int64_t bytes;
};
/// The bytes over time of `worker`. They include the `resident` bytes, which
/// the worker always has. There is a sample at time 0, and one at each start
/// and end of an action. `timing` may be from `simulate` or slotTiming.
/// Requires timing.complete.
std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker,
                                         int64_t resident);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_MEMORY_H
