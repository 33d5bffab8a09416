//===- PlanBounds.cpp - Lower bounds of a choice's plans ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/PlanBounds.h"

#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Memory.h"

#include <algorithm>
#include <cmath>

namespace chimera::plan {

using schedule::Problem;

/// A factor that keeps rounding errors from making a bound too large.
constexpr double kRoundedDown = 1 - 1e-12;

double stepBoundOfAnyCut(const cost::LayerTable &table, const Problem &placed) {
  // `work` is the time of all actions of one micro-batch. `way` is the time in
  // which it goes from the first stage to the last and back, without weight
  // gradients.
  double work = 0, way = 0;
  const bool areSplit = placed.splits.any();
  for (const cost::LayerCost &layer : table.layers) {
    int64_t halves = layer.inputGradient + layer.weightGradient;
    int64_t back = areSplit ? std::min(layer.backward, halves) : layer.backward;
    work += static_cast<double>(layer.forward + back);
    way += static_cast<double>(
        layer.forward +
        (areSplit ? std::min(back, layer.inputGradient) : back));
  }
  double workers = 0; // number that can compute at the same time
  for (const schedule::CoreGroup &group : coreGroups(placed))
    workers += std::min(group.cores, static_cast<double>(group.workers));
  double bound =
      work * placed.microBatches() / (workers > 0 ? workers : placed.workers);
  if (schedule::stepsOverlap(placed.updates))
    return bound * kRoundedDown;
  // If a flush ends the step and a pipeline has n micro-batches, the step takes
  // at least w(s) + n e(s) for each stage s (see stepBound). Here e(s) is the
  // time of a micro-batch on stage s, and w(s) is the sum of e over the stages
  // before s. The bound is the largest of these S values. For a given sum of
  // all e, it is smallest if all values are the same value L. Then
  //
  //   e(0) = L/n, e(1) = (L - e(0))/n, …, sum of all e = L (1 - (1 - 1/n)^S)
  //
  // The sum of all e is `way`, so the bound is L = way / (1 - (1 - 1/n)^S).
  auto stages = static_cast<double>(placed.stages.size());
  for (const schedule::Pipeline &pipeline : placed.pipelines)
    if (pipeline.backwardParts == 1) {
      auto n = static_cast<double>(pipeline.microBatches.size());
      bound = std::max(bound, way / (1 - std::pow(1 - 1 / n, stages)));
    }
  return bound * kRoundedDown;
}

namespace {

/// Computes the terms of stepBound.
class StepParts {
public:
  explicit StepParts(const Problem &problem) : problem(problem) {}

  double load() const {
    std::vector<int64_t> busy(problem.workers, 0);
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        busy[pipeline.workers[s]] +=
            std::ssize(pipeline.microBatches) * timeOf(problem.stages[s]) +
            (isFlush() ? problem.stages[s].update : 0);
    return minStepTime(problem, busy);
  }

  bool isFlush() const { return !schedule::stepsOverlap(problem.updates); }

  /// For each stage, adds two times: the time in which one micro-batch goes
  /// from the first stage to this stage and back, and the time of all forwards
  /// and backwards of the pipeline on this stage. Returns the largest of these
  /// sums plus the update of the first stage. Weight gradients are not counted.
  /// If backwards have parts, the first time is 0, because the way back may
  /// begin after any part.
  int64_t wayAndWork(const schedule::Pipeline &pipeline) const {
    int64_t way = 0, most = 0;
    for (const schedule::StageCost &cost : problem.stages) {
      int64_t each = cost.forward + backOf(cost);
      most = std::max(most, way + std::ssize(pipeline.microBatches) * each);
      if (pipeline.backwardParts == 1)
        way += each;
    }
    return most + problem.stages.front().update;
  }

private:
  bool areSplit() const { return problem.splits.any(); }
  int64_t timeOf(const schedule::StageCost &cost) const {
    int64_t halves = cost.inputGradient + cost.weightGradient;
    return cost.forward +
           (areSplit() ? std::min(cost.backward, halves) : cost.backward);
  }
  int64_t backOf(const schedule::StageCost &cost) const {
    return areSplit() ? std::min(cost.backward, cost.inputGradient)
                      : cost.backward;
  }

  const Problem &problem;
};

} // namespace

double stepBound(const Problem &problem) {
  StepParts parts(problem);
  double bound =
      std::max(parts.load(), static_cast<double>(busiestChannel(problem)));
  if (parts.isFlush())
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      bound = std::max(bound, static_cast<double>(parts.wayAndWork(pipeline)));
  return bound * kRoundedDown;
}

int64_t memoryBound(const Problem &problem) {
  int64_t held = 0;
  for (int64_t bytes : residentBytes(problem))
    held += bytes;
  for (const schedule::StageBytes &stage : problem.bytes)
    held += stage.gradient() * std::ssize(problem.pipelines);
  return held / problem.workers;
}

} // namespace chimera::plan
