//===- OneForwardOneBackward.cpp - 1F1B with a flush ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 1F1B with a flush, as in DAPPLE: Fan et al., "DAPPLE: A Pipelined Data
// Parallel Approach for Training Large Models", PPoPP'21, section 3.
//
// D=3, N=4, equal times:
//
//   t    0  1  2  3  4  5  6  7  8  9  10 11
//   P0   F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   P1   .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
//   P2   .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// Worker w runs min(N, D-1-w) warm-up forwards, then alternates between
/// forwards and backwards, then runs the remaining backwards.
PlanOrError make1F1B(const Request &request) {
  Plan plan = placeLinear(request);
  plan.order.workers.resize(request.workers);
  int32_t count = request.microBatches;
  for (int32_t w = 0; w < request.workers; ++w) {
    std::vector<Action> &row = plan.order.workers[w];
    int32_t warmUp = std::min(count, request.workers - 1 - w);
    for (int32_t i = 0; i < count + warmUp; ++i) {
      if (i < count)
        row.push_back({Kind::Forward, 0, w, i});
      if (i >= warmUp)
        row.push_back({Kind::Backward, 0, w, i - warmUp});
    }
  }
  return plan;
}

constexpr BubbleFormula k1F1BBubbles[] = {
    {"(D-1)/(N+D-1)", "all N", kTable2, always, linearBubble}};

constexpr PeakFormula k1F1BPeaks[] = {
    {"1 to min(N, D)", "all N", kTable2, always, upToWorkers}};

} // namespace

const Scheme kOneForwardOneBackward = {
    "1f1b",
    "one forward, one backward, with a flush (DAPPLE)",
    "any D >= 1, S = D, any N >= 1",
    {},
    checkOneStageEach,
    placeLinear,
    make1F1B,
    k1F1BBubbles,
    k1F1BPeaks};

} // namespace chimera::schedule
