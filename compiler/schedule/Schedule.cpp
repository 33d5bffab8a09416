//===- Schedule.cpp - An order of actions ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::Forward:
    return "forward";
  case Kind::Backward:
    return "backward";
  case Kind::InputGradient:
    return "input_gradient";
  case Kind::WeightGradient:
    return "weight_gradient";
  case Kind::Recompute:
    return "recompute";
  }
  return "unknown";
}

std::string describe(const Action &action) {
  return std::string(nameOf(action.kind)) + " of pipeline " +
         std::to_string(action.pipeline) + ", stage " +
         std::to_string(action.stage) + ", micro-batch " +
         std::to_string(action.microBatch);
}

Action ActionIds::action(int64_t id,
                         const std::vector<int32_t> &pipelineOf) const {
  auto k = static_cast<int32_t>(id % kinds);
  auto microBatch = static_cast<int32_t>(id / kinds % microBatches);
  auto stage = static_cast<int32_t>(id / kinds / microBatches);
  Kind kind = k == 0       ? Kind::Forward
              : kinds == 2 ? Kind::Backward
              : k == 1     ? Kind::InputGradient
                           : Kind::WeightGradient;
  return {kind, pipelineOf[microBatch], stage, microBatch};
}

std::vector<int32_t> pipelineOfMicroBatch(const Problem &problem) {
  std::vector<int32_t> result(problem.microBatches(), 0);
  for (size_t p = 0; p < problem.pipelines.size(); ++p)
    for (int32_t m : problem.pipelines[p].microBatches)
      result[m] = static_cast<int32_t>(p);
  return result;
}

Schedule splitBackwards(const Schedule &schedule) {
  Schedule result;
  for (const std::vector<Action> &actions : schedule.workers) {
    std::vector<Action> &out = result.workers.emplace_back();
    for (Action action : actions) {
      if (action.kind != Kind::Backward) {
        out.push_back(action);
        continue;
      }
      action.kind = Kind::InputGradient;
      out.push_back(action);
      action.kind = Kind::WeightGradient;
      out.push_back(action);
    }
  }
  return result;
}

} // namespace chimera::schedule
