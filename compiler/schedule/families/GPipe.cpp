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

std::string checkNothing(int32_t, int32_t, const SchemeOptions &) { return {}; }

std::vector<Pipeline> placeLinear(int32_t stages, int32_t microBatches,
                                  const SchemeOptions &) {
  Pipeline pipeline;
  for (int32_t s = 0; s < stages; ++s)
    pipeline.workers.push_back(s);
  for (int32_t m = 0; m < microBatches; ++m)
    pipeline.microBatches.push_back(m);
  return {pipeline};
}

namespace {

Schedule orderGPipe(const Problem &problem, const SchemeOptions &) {
  Schedule schedule;
  schedule.workers.resize(problem.workers);
  for (int32_t w = 0; w < problem.workers; ++w)
    for (Kind kind : {Kind::Forward, Kind::Backward})
      for (int32_t m : problem.pipelines[0].microBatches)
        schedule.workers[w].push_back({kind, 0, w, m});
  return schedule;
}

} // namespace

const Scheme kGPipe = {"gpipe",
                       "all forwards, then all backwards",
                       "any D >= 1, any N >= 1",
                       {},
                       checkNothing,
                       placeLinear,
                       orderGPipe,
                       checkNothing};

} // namespace chimera::schedule
