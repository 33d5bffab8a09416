//===- Steps.cpp - Steps that overlap -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Steps.h"

#include <algorithm>

namespace chimera::schedule {

int64_t weightVersion(const Problem &problem, int32_t stage,
                      int64_t microBatch) {
  switch (problem.updates) {
  case Updates::Flush:
    return 0;
  case Updates::EachMicroBatch:
    return std::max<int64_t>(0,
                             microBatch + 1 - weightVersions(problem, stage));
  case Updates::EachStep:
    return std::max<int64_t>(0, microBatch / problem.microBatches() - 1);
  }
  return 0;
}

int32_t weightVersions(const Problem &problem, int32_t stage) {
  switch (problem.updates) {
  case Updates::Flush:
    return 1;
  case Updates::EachMicroBatch:
    return static_cast<int32_t>(problem.stages.size()) - stage;
  case Updates::EachStep:
    return 2;
  }
  return 1;
}

Schedule unrollSteps(const Problem &problem, const Schedule &schedule,
                     int32_t steps) {
  Schedule result;
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const std::vector<Action> &actions = schedule.workers[w];
    auto [begin, end] = schedule.bodies[w];
    std::vector<Action> &out = result.workers.emplace_back();
    out.reserve(actions.size() +
                static_cast<size_t>(steps - 2) * (end - begin));
    auto append = [&](int32_t from, int32_t to, int32_t shift) {
      for (int32_t i = from; i < to; ++i) {
        out.push_back(actions[i]);
        out.back().microBatch += shift * problem.microBatches();
      }
    };
    append(0, begin, 0);
    for (int32_t step = 0; step + 1 < steps; ++step)
      append(begin, end, step);
    append(end, static_cast<int32_t>(actions.size()), steps - 2);
  }
  if (steps == 2)
    result.bodies = schedule.bodies;
  return result;
}

} // namespace chimera::schedule
