//===- GPipe.cpp - All forwards, then all backwards -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPipe: Huang et al., "GPipe: Efficient Training of Giant Neural Networks
// using Pipeline Parallelism", NeurIPS'19, section 2 and Figure 2c.
//
// D=3, N=3, equal times:
//
//   t    0  1  2  3  4  5  6  7  8  9
//   P0   F0 F1 F2 .  .  .  .  B0 B1 B2
//   P1   .  F0 F1 F2 .  .  B0 B1 B2 .
//   P2   .  .  F0 F1 F2 B0 B1 B2 .  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

namespace chimera::schedule {

namespace {

PlanOrError makeGPipe(const Request &request) {
  Plan plan = placeLinear(request);
  plan.order.workers.resize(request.workers);
  for (int32_t w = 0; w < request.workers; ++w)
    for (Kind kind : {Kind::Forward, Kind::Backward})
      for (int32_t m = 0; m < request.microBatches; ++m)
        plan.order.workers[w].push_back({kind, 0, w, m});
  return plan;
}

constexpr BubbleFormula kGPipeBubbles[] = {
    {"(D-1)/(N+D-1)", "all N", kTable2, always, linearBubble}};

constexpr PeakFormula kGPipePeaks[] = {
    {"N", "all N", kTable2, always,
     [](const Sizes &s) { return std::pair(s.microBatches, s.microBatches); }}};

} // namespace

const Scheme kGPipe = {"gpipe",
                       "all forwards, then all backwards",
                       "any D >= 1, S = D, any N >= 1",
                       {},
                       checkOneStageEach,
                       placeLinear,
                       makeGPipe,
                       kGPipeBubbles,
                       kGPipePeaks};

} // namespace chimera::schedule
