//===- Memory.h - What a worker holds ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's memory model. A worker holds
//
// - always: weights, each version that it keeps (Steps.h), and optimizer state,
//   of every stage of every pipeline on it;
// - the sum of a stage's gradients, as much as a version of its weights, from
//   the start of the first backward, or weight gradient, in it to its update:
//   at the end of the step where there is a flush, else not before the end of
//   the last backward in it;
// - the stash of a micro-batch on a stage from the start of its forward to the
//   end of its backward, or of its input gradient where the backward is split,
//   and the weight stash from the start of that to the end of the weight
//   gradient; of a part of a micro-batch, where backwards come in parts, their
//   share. While the input gradient runs, the larger of both counts: it frees
//   the one as it makes the other;
// - where it is recomputed, from the start of the forward to the end of the
//   recompute only what the forward read, a boundary of the stage before, and
//   the stash from the start of the recompute;
// - while an action runs, what it reads from and gives to the stages before and
//   after: a boundary for each that exists, its share for a part, as many as
//   there are micro-batches for a forward over several, what stays for a
//   recompute counted once; none in a weight gradient or a recompute.
//
// Messages that wait to be read are not counted: how many there are depends on
// the transport. As a worker runs one action at a time, what it holds follows
// from its order alone, and at one instant release comes before acquire.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MEMORY_H
#define CHIMERA_COMPILER_SCHEDULE_MEMORY_H

#include "compiler/schedule/Simulate.h"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace chimera::schedule {

/// What each worker always holds, in bytes.
std::vector<int64_t> residentBytes(const Problem &problem);

/// The most that a worker holds at a time.
struct MemoryPeak {
  int64_t bytes = 0;
  int32_t activations = 0;
  /// The action at which the bytes are first reached, -1 where no action runs.
  int32_t index = -1;
};

class MemoryWalk;

/// Finds the peak of one worker after another.
class MemoryPeaks {
public:
  /// Refers to `problem`.
  explicit MemoryPeaks(const Problem &problem);
  ~MemoryPeaks();

  /// Of a worker that always holds `resident` bytes, while it runs `order`.
  /// Takes time for the actions of `order` only.
  MemoryPeak of(std::span<const Action> order, int64_t resident);

private:
  std::unique_ptr<MemoryWalk> walk;
};

/// The worker whose peak is above its cap by most. A program's worker holds at
/// least that peak: its values need the places that the model counts, and
/// waiting messages, tokens and losses need more.
struct CapExcess {
  int32_t worker;
  MemoryPeak peak;
  int32_t others; ///< how many workers exceed theirs beside it
};
/// None where all fit, or there are no caps. Requires a valid schedule.
std::optional<CapExcess> capExcess(const Problem &problem,
                                   const Schedule &schedule);
/// ", and 2 other workers above it", empty for none.
std::string othersAbove(int64_t others);
/// "at least 814 bytes on worker 0 at forward of pipeline 0, stage 0,
/// micro-batch 7, and 1 other worker above it".
std::string describe(const CapExcess &excess, const Schedule &schedule);

/// Bytes that a worker holds from a time on, until the next sample.
struct MemorySample {
  int64_t time;
  int64_t bytes;
};
/// The bytes over time of `worker`, which always holds `resident` of them: a
/// sample at 0 and one wherever an action starts or ends. With `slots` every
/// action is one slot long, as slotTiming has it. Requires timing.complete.
std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker,
                                         int64_t resident);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MEMORY_H
