//===- Gems.cpp - One micro-batch chases another --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GEMS: Jain et al., "GEMS: GPU-Enabled Memory-Aware Model-Parallelism System
// for Distributed DNN Training", SC'20, section 4. It aims at memory: a worker
// holds the activations of one micro-batch.
//
// D=3, N=3, equal times, upper case down, lower case up:
//
//   t    0  1  2  3  4  5  6  7  8  9  10 11 12 13
//   P0   F0 .  .  .  .  B0 f1 b1 F2 .  .  .  .  B2
//   P1   .  F0 .  .  B0 f1 .  .  b1 F2 .  .  B2 .
//   P2   .  .  F0 B0 f1 .  .  .  .  b1 F2 B2 .  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

namespace chimera::schedule {

namespace {

std::string checkGems(int32_t stages, int32_t, const SchemeOptions &) {
  if (stages < 2)
    return "expected at least 2 stages, got 1: one worker has nobody to run in "
           "the other direction; use gpipe or 1f1b";
  return {};
}

/// Even micro-batches go down, odd ones up.
std::vector<Pipeline> placeGems(int32_t stages, int32_t microBatches,
                                const SchemeOptions &) {
  std::vector<Pipeline> pipelines = placeBothWays(stages);
  for (int32_t m = 0; m < microBatches; ++m)
    pipelines[m % 2].microBatches.push_back(m);
  if (microBatches == 1)
    pipelines.pop_back();
  return pipelines;
}

/// Every worker runs forward and backward of one micro-batch before the next,
/// which enters at the worker where the one before turns round: with f and b
/// the times of a forward and a backward, D(f+b) + (N-1)(D max(f,b) +
/// min(f,b)) in all.
Schedule orderGems(const Problem &problem, const SchemeOptions &) {
  Schedule schedule;
  schedule.workers.resize(problem.workers);
  for (int32_t m = 0; m < problem.microBatches(); ++m) {
    const Pipeline &pipeline = problem.pipelines[m % 2];
    for (size_t s = 0; s < pipeline.workers.size(); ++s)
      for (Kind kind : {Kind::Forward, Kind::Backward})
        schedule.workers[pipeline.workers[s]].push_back(
            {kind, m % 2, static_cast<int32_t>(s), m});
  }
  return schedule;
}

} // namespace

const Scheme kGems = {
    "gems",
    "two copies of the model take turns: least memory, most idle time",
    "any D >= 2, any N >= 1",
    {},
    checkGems,
    placeGems,
    orderGems,
    checkNothing};

} // namespace chimera::schedule
