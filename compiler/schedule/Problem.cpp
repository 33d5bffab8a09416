//===- Problem.cpp - What is to be scheduled ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Problem.h"

#include <algorithm>

namespace chimera::schedule {

int32_t Problem::microBatches() const {
  size_t count = 0;
  for (const Pipeline &pipeline : pipelines)
    count += pipeline.microBatches.size();
  return static_cast<int32_t>(count);
}

int64_t Problem::cost(Kind kind, int32_t stage) const {
  const StageCost &cost = stages[stage];
  switch (kind) {
  case Kind::Forward:
    return cost.forward;
  case Kind::Backward:
    return cost.backward;
  case Kind::InputGradient:
    return cost.inputGradient;
  case Kind::WeightGradient:
    return cost.weightGradient;
  }
  return 0;
}

/// True if the step's times, one after another with the latency behind each,
/// sum to less than 2^62: no schedule's makespan overflows.
static bool timesFit(const Problem &problem) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t sum = 0;
  auto add = [&](int64_t time) {
    return !__builtin_add_overflow(sum, time, &sum) && sum < kMost;
  };
  for (const StageCost &cost : problem.stages)
    for (int64_t time :
         {cost.forward, cost.backward, cost.inputGradient, cost.weightGradient})
      if (!add(time) || !add(problem.latency))
        return false;
  return !__builtin_mul_overflow(sum, problem.microBatches(), &sum) &&
         sum < kMost;
}

std::string check(const Problem &problem) {
  if (problem.workers < 1)
    return "expected at least one worker, got " +
           std::to_string(problem.workers);
  if (problem.stages.empty())
    return "expected at least one stage, got none";
  if (problem.latency < 0)
    return "expected a latency of at least 0, got " +
           std::to_string(problem.latency);
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const StageCost &cost = problem.stages[s];
    int64_t least = std::min(
        {cost.forward, cost.backward, cost.inputGradient, cost.weightGradient});
    if (least < 1)
      return "expected costs of at least 1 on stage " + std::to_string(s) +
             ", got " + std::to_string(least);
  }
  int32_t count = problem.microBatches();
  if (count < 1)
    return "expected at least one micro-batch, got none";
  if (!timesFit(problem))
    return "expected times that sum to less than 2^62 over the step";
  std::vector<bool> taken(count, false);
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    const Pipeline &pipeline = problem.pipelines[p];
    std::string where = "pipeline " + std::to_string(p);
    if (pipeline.microBatches.empty())
      return "expected " + where + " to have micro-batches, got none";
    if (pipeline.workers.size() != problem.stages.size())
      return "expected " + where + " to place " +
             std::to_string(problem.stages.size()) + " stages, got " +
             std::to_string(pipeline.workers.size());
    for (int32_t worker : pipeline.workers)
      if (worker < 0 || worker >= problem.workers)
        return "expected " + where + " to use workers below " +
               std::to_string(problem.workers) + ", got " +
               std::to_string(worker);
    for (int32_t m : pipeline.microBatches) {
      if (m < 0 || m >= count)
        return "expected " + where + " to have micro-batches below " +
               std::to_string(count) + ", got " + std::to_string(m);
      if (taken[m])
        return "expected each micro-batch in one pipeline, got micro-batch " +
               std::to_string(m) + " twice, again in " + where;
      taken[m] = true;
    }
  }
  return {};
}

} // namespace chimera::schedule
