//===- PipeDream.cpp - Steps without a flush ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for
// DNN Training", SOSP'19, section 3.2. PipeDream-2BW: Narayanan et al.,
// "Memory-Efficient Pipeline-Parallel DNN Training", ICML'21, section 3.1. In
// both schemes, every worker alternates between forwards and backwards without
// a flush. PipeDream updates the weights after each micro-batch, PipeDream-2BW
// once a step.
//
// The body of a worker is the 2N actions that it repeats every step. The body
// of worker w begins after D-1-w warm-up forwards: on worker 0 below, with F2.
//
// D=3, N=3, two steps, equal times:
//
//   t    0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//   P0   F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5
//   P1   .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 .  B5 .
//   P2   .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .  .
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// With N < D, one step could not fill the pipeline before its body begins.
std::string checkPipeDream(const Request &request) {
  if (request.microBatches < request.workers)
    return "expected at least as many micro-batches a step as workers (" +
           std::to_string(request.workers) + "), got " +
           std::to_string(request.microBatches);
  return checkOneStageEach(request);
}

template <Updates updates> Plan placeWithoutFlush(const Request &request) {
  Plan plan = placeLinear(request);
  plan.updates = updates;
  return plan;
}

/// Worker w runs D-1-w warm-up forwards, then alternates between forwards and
/// backwards.
template <Updates updates>
PlanOrError makeWithoutFlush(const Request &request) {
  Plan plan = placeWithoutFlush<updates>(request);
  int32_t each = request.microBatches, all = 2 * each;
  plan.order.workers.resize(request.workers);
  for (int32_t w = 0; w < request.workers; ++w) {
    std::vector<Action> &row = plan.order.workers[w];
    int32_t warmUp = request.workers - 1 - w;
    for (int32_t i = 0; i < all + warmUp; ++i) {
      if (i < all)
        row.push_back({Kind::Forward, 0, w, i});
      if (i >= warmUp)
        row.push_back({Kind::Backward, 0, w, i - warmUp});
    }
    plan.order.bodies.push_back({warmUp, warmUp + 2 * each});
  }
  return plan;
}

std::string notePipeDream(const Problem &problem) {
  if (problem.workers == 1)
    return {};
  return "gradients are applied to newer weights than those that they were "
         "computed from: on the first stage to weights that are " +
         std::to_string(problem.workers - 1) +
         (problem.workers == 2 ? " update" : " updates") + " newer";
}

std::string note2BW(const Problem &) {
  return "gradients are applied to weights that are one update newer than "
         "those "
         "that they were computed from, on all stages";
}

constexpr BubbleFormula kPipeDreamBubbles[] = {
    {"0", "steady state, all N", kTable2, always,
     [](const Sizes &) { return 0.0; }}};

constexpr PeakFormula kPipeDreamPeaks[] = {
    {"1 to D", "all N", kTable2, always, upToWorkers}};

} // namespace

const Scheme kPipeDream = {
    "pipedream",
    "one forward, one backward, without a flush: an update after each "
    "micro-batch, up to D versions of the weights",
    "any D >= 1, S = D, any N >= D",
    {},
    checkPipeDream,
    placeWithoutFlush<Updates::EachMicroBatch>,
    makeWithoutFlush<Updates::EachMicroBatch>,
    kPipeDreamBubbles,
    kPipeDreamPeaks,
    notePipeDream};

const Scheme kPipeDream2BW = {
    "pipedream-2bw",
    "one forward, one backward, without a flush: an update a step, two "
    "versions of the weights",
    "any D >= 1, S = D, any N >= D",
    {},
    checkPipeDream,
    placeWithoutFlush<Updates::EachStep>,
    makeWithoutFlush<Updates::EachStep>,
    kPipeDreamBubbles,
    kPipeDreamPeaks,
    note2BW};

} // namespace chimera::schedule
