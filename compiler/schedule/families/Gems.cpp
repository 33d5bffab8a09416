//===- Gems.cpp - Pipelines of two directions take turns ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GEMS: Jain et al., "GEMS: GPU-Enabled Memory-Aware Model-Parallelism System
// for Distributed DNN Training", SC'20, section 4. The aim of GEMS is low
// memory: a worker keeps the activations of only one micro-batch.
//
// D=3, N=3, equal times, upper case down pipeline, lower case up pipeline:
//
//   t    0  1  2  3  4  5  6  7  8  9  10 11 12 13
//   P0   F0 .  .  .  .  B0 f1 b1 F2 .  .  .  .  B2
//   P1   .  F0 .  .  B0 f1 .  .  b1 F2 .  .  B2 .
//   P2   .  .  F0 B0 f1 .  .  .  .  b1 F2 B2 .  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

std::string checkGems(const Request &request) {
  if (request.workers < 2)
    return "expected at least 2 workers for two directions, got 1: use gpipe "
           "or 1f1b";
  return checkOneStageEach(request);
}

/// Even micro-batches use the down pipeline, and odd micro-batches use the up
/// pipeline.
Plan placeGems(const Request &request) {
  Plan plan;
  plan.pipelines = placeBothWays(request.workers);
  for (int32_t m = 0; m < request.microBatches; ++m)
    plan.pipelines[m % 2].microBatches.push_back(m);
  if (request.microBatches == 1)
    plan.pipelines.pop_back();
  return plan;
}

/// Every worker runs the forward and the backward of a micro-batch before the
/// forward and the backward of the next micro-batch. The last stage of a
/// micro-batch is on the worker that has the first stage of the next
/// micro-batch. With f and b the times of a forward and a backward, the
/// makespan is D(f+b) + (N-1)(D max(f,b) + min(f,b)).
PlanOrError makeGems(const Request &request) {
  Plan plan = placeGems(request);
  plan.order.workers.resize(request.workers);
  for (int32_t m = 0; m < request.microBatches; ++m)
    for (int32_t s = 0; s < request.stageCount(); ++s)
      for (Kind kind : {Kind::Forward, Kind::Backward})
        plan.order.workers[plan.pipelines[m % 2].workers[s]].push_back(
            {kind, m % 2, s, m});
  return plan;
}

constexpr BubbleFormula kGemsBubbles[] = {
    {"1 - N(f+b)/T, T = D(f+b) + (N-1)(D max(f,b) + min(f,b))", "all N",
     kMeasured, always, [](const Sizes &s) {
       auto [less, more] = std::minmax(s.forward, s.backward);
       return idleShare(s,
                        s.workers * (s.forward + s.backward) +
                            (s.microBatches - 1) * (s.workers * more + less));
     }}};

constexpr PeakFormula kGemsPeaks[] = {
    {"1", "all N", kTable2, always,
     [](const Sizes &) { return std::pair<int64_t, int64_t>(1, 1); }}};

} // namespace

const Scheme kGems = {
    "gems",
    "two copies of the model take turns: least memory, most idle time",
    "any D >= 2, S = D, any N >= 1",
    {},
    checkGems,
    placeGems,
    makeGems,
    kGemsBubbles,
    kGemsPeaks};

} // namespace chimera::schedule
