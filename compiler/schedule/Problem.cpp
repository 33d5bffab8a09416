//===- Problem.cpp - What is to be scheduled ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Problem.h"

#include <algorithm>
#include <span>

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
  case Kind::Recompute:
    return cost.recompute;
  }
  return 0;
}

/// Times and bytes of a step stay below this, so that sums never overflow.
static constexpr int64_t kMost = int64_t{1} << 62;

/// `bytes` at the link's speed without alpha, or kMost if it is more.
static int64_t linkTime(const Link &link, int64_t bytes) {
  __extension__ using Wide = __int128;
  Wide product = static_cast<Wide>(bytes) * link.beta;
  Wide time = (product + link.betaBytes - 1) / link.betaBytes;
  return time < kMost ? static_cast<int64_t>(time) : kMost;
}

int64_t Problem::transfer(int32_t stage) const {
  return link.alpha + linkTime(link, bytesOf(stage).boundary);
}

/// True if the sum of `terms`, `times` over, is below kMost.
static bool fits(std::span<const int64_t> terms, int64_t times) {
  int64_t sum = 0;
  for (int64_t term : terms)
    if (__builtin_add_overflow(sum, term, &sum))
      return false;
  return !__builtin_mul_overflow(sum, times, &sum) && sum < kMost;
}

/// True if the step's times, one after another with a message behind each, are
/// below kMost: no schedule's makespan overflows.
static bool timesFit(const Problem &problem) {
  std::vector<int64_t> times;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const StageCost &cost = problem.stages[s];
    int64_t bytes = problem.bytesOf(static_cast<int32_t>(s)).boundary;
    times.insert(times.end(), {cost.forward, cost.backward, cost.inputGradient,
                               cost.weightGradient});
    times.insert(times.end(), 4, problem.link.alpha);
    times.insert(times.end(), 4, linkTime(problem.link, bytes));
  }
  return fits(times, problem.microBatches());
}

/// True if all replicas and all activations together are below kMost.
static bool bytesFit(const Problem &problem) {
  std::vector<int64_t> sizes;
  for (const StageBytes &bytes : problem.bytes)
    sizes.insert(sizes.end(), {bytes.weights, bytes.weights, bytes.optimizer,
                               bytes.stash, bytes.boundary, bytes.boundary});
  return fits(sizes, int64_t{problem.microBatches()} +
                         static_cast<int64_t>(problem.pipelines.size()));
}

/// What is wrong with link, bytes and caps.
static std::string checkSizes(const Problem &problem) {
  const Link &link = problem.link;
  if (link.alpha < 0)
    return "expected a message latency of at least 0, got " +
           std::to_string(link.alpha);
  if (link.beta < 0 || link.betaBytes < 1)
    return "expected a message time of at least 0 for at least 1 byte, got " +
           std::to_string(link.beta) + " for " + std::to_string(link.betaBytes);
  if (!problem.bytes.empty() && problem.bytes.size() != problem.stages.size())
    return "expected the bytes of all " +
           std::to_string(problem.stages.size()) + " stages or of none, got " +
           std::to_string(problem.bytes.size());
  for (size_t s = 0; s < problem.bytes.size(); ++s) {
    const StageBytes &bytes = problem.bytes[s];
    int64_t least =
        std::min({bytes.weights, bytes.optimizer, bytes.stash, bytes.boundary});
    if (least < 0)
      return "expected bytes of at least 0 on stage " + std::to_string(s) +
             ", got " + std::to_string(least);
  }
  size_t workers = static_cast<size_t>(problem.workers);
  if (!problem.memoryCaps.empty() && problem.memoryCaps.size() != workers)
    return "expected memory caps for all " + std::to_string(workers) +
           " workers or for none, got " +
           std::to_string(problem.memoryCaps.size());
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w)
    if (problem.memoryCaps[w] < 0)
      return "expected a memory cap of at least 0 on worker " +
             std::to_string(w) + ", got " +
             std::to_string(problem.memoryCaps[w]);
  return {};
}

std::string check(const Problem &problem) {
  if (problem.workers < 1)
    return "expected at least one worker, got " +
           std::to_string(problem.workers);
  if (problem.stages.empty())
    return "expected at least one stage, got none";
  if (std::string error = checkSizes(problem); !error.empty())
    return error;
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
  if (!bytesFit(problem))
    return "expected bytes that sum to less than 2^62 over the step";
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
