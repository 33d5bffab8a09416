//===- Chimera.cpp - Bidirectional pipelines ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chimera: Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural
// Networks with Bidirectional Pipelines", SC'21, section 3 and Figure 3.
//
// D=4, N=4, upper case down, lower case up:
//
//   slot 0  1  2  3  4  5  6  7  8  9
//   P0   F0 .  F1 f2 b2 f3 b3 B0 .  B1
//   P1   .  F0 f2 F1 f3 b2 B0 b3 B1 .
//   P2   .  f2 F0 f3 F1 B0 b2 B1 b3 .
//   P3   f2 .  f3 F0 B0 F1 B1 b2 .  b3
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

std::string checkChimera(int32_t stages, int32_t microBatches) {
  if (stages < 2 || stages % 2 != 0)
    return "expected an even number of stages, at least 2, got " +
           std::to_string(stages);
  if (microBatches != stages)
    return "expected as many micro-batches as stages (" +
           std::to_string(stages) + "), got " + std::to_string(microBatches);
  return {};
}

/// The down pipeline has stage s on worker s and the first half of the
/// micro-batches, the up pipeline stage s on worker D-1-s and the second half.
std::vector<Pipeline> placeChimera(int32_t stages, int32_t microBatches) {
  std::vector<Pipeline> pipelines(2);
  pipelines[1].up = true;
  for (int32_t s = 0; s < stages; ++s) {
    pipelines[0].workers.push_back(s);
    pipelines[1].workers.push_back(stages - 1 - s);
  }
  for (int32_t m = 0; m < microBatches; ++m)
    pipelines[m < microBatches / 2 ? 0 : 1].microBatches.push_back(m);
  return pipelines;
}

/// In either direction the j-th micro-batch runs its forward on stage s in slot
/// 2j + s and its backward in slot 2j + 2D - 1 - s. For even D the two
/// directions never meet: on one worker down forwards and up backwards have one
/// parity, up forwards and down backwards the other, and the pairs of equal
/// parity lie in disjoint ranges.
Schedule orderChimera(const Problem &problem) {
  auto stages = static_cast<int32_t>(problem.stages.size());
  struct Entry {
    int64_t slot;
    Action action;
  };
  std::vector<std::vector<Entry>> table(problem.workers);
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    const Pipeline &pipeline = problem.pipelines[p];
    for (size_t j = 0; j < pipeline.microBatches.size(); ++j)
      for (int32_t s = 0; s < stages; ++s) {
        auto first = static_cast<int64_t>(2 * j);
        Action action{Kind::Forward, static_cast<int32_t>(p), s,
                      pipeline.microBatches[j]};
        std::vector<Entry> &row = table[pipeline.workers[s]];
        row.push_back({first + s, action});
        action.kind = Kind::Backward;
        row.push_back({first + 2 * stages - 1 - s, action});
      }
  }
  Schedule schedule;
  for (std::vector<Entry> &row : table) {
    std::sort(row.begin(), row.end(),
              [](const Entry &a, const Entry &b) { return a.slot < b.slot; });
    schedule.workers.emplace_back();
    schedule.slots.emplace_back();
    for (const Entry &entry : row) {
      schedule.workers.back().push_back(entry.action);
      schedule.slots.back().push_back(entry.slot);
    }
  }
  return schedule;
}

} // namespace

const Scheme kChimera = {
    "chimera",
    "bidirectional pipelines: two copies of the model, one down and one up",
    "even D >= 2, N = D",
    checkChimera,
    placeChimera,
    orderChimera};

} // namespace chimera::schedule
