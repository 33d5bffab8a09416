//===- PipeDream.cpp - Steps without a flush ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for
// DNN Training", SOSP'19, section 3.2; and PipeDream-2BW: Narayanan et al.,
// "Memory-Efficient Pipeline-Parallel DNN Training", ICML'21, section 3.1. Both
// run one forward, one backward for ever; they differ in when weights change.
//
// D=3, N=3, two steps, equal times: a body is 2N actions from the first column
// in which a worker runs what it repeats, F2 on worker 0.
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

/// Fewer micro-batches could not fill the pipeline before a step's body.
std::string checkPipeDream(int32_t stages, int32_t microBatches,
                           const SchemeOptions &) {
  if (microBatches < stages)
    return "expected at least as many micro-batches a step as stages (" +
           std::to_string(stages) + "), got " + std::to_string(microBatches);
  return {};
}

/// Worker w runs D-1-w forwards, then a forward and a backward in turn.
Schedule orderPipeDream(const Problem &problem, const SchemeOptions &) {
  int32_t each = problem.microBatches(), all = each * problem.steps;
  Schedule schedule;
  schedule.workers.resize(problem.workers);
  for (int32_t w = 0; w < problem.workers; ++w) {
    std::vector<Action> &row = schedule.workers[w];
    int32_t warmUp = problem.workers - 1 - w;
    for (int32_t i = 0; i < all + warmUp; ++i) {
      if (i < all)
        row.push_back({Kind::Forward, 0, w, i});
      if (i >= warmUp)
        row.push_back({Kind::Backward, 0, w, i - warmUp});
    }
    if (problem.steps == 2)
      schedule.bodies.push_back({warmUp, warmUp + 2 * each});
  }
  return schedule;
}

std::string notePipeDream(int32_t stages, int32_t, const SchemeOptions &) {
  if (stages == 1)
    return {};
  return "a gradient is applied to newer weights than those it was computed "
         "from: the first stage's are " +
         std::to_string(stages - 1) + (stages == 2 ? " update" : " updates") +
         " older";
}

std::string note2BW(int32_t, int32_t, const SchemeOptions &) {
  return "a gradient is applied to newer weights than those it was computed "
         "from: all stages' are one update older";
}

} // namespace

const Scheme kPipeDream = {
    "pipedream",
    "one forward, one backward, without a flush: an update after each "
    "micro-batch, up to D versions of the weights",
    "any D >= 1, any N >= D",
    {},
    checkPipeDream,
    placeLinear,
    orderPipeDream,
    notePipeDream,
    Updates::EachMicroBatch};

const Scheme kPipeDream2BW = {
    "pipedream-2bw",
    "one forward, one backward, without a flush: an update a step, two "
    "versions of the weights",
    "any D >= 1, any N >= D",
    {},
    checkPipeDream,
    placeLinear,
    orderPipeDream,
    note2BW,
    Updates::EachStep};

} // namespace chimera::schedule
