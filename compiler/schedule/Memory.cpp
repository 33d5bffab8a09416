//===- Memory.cpp - What a worker holds ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Memory.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// What an action changes: bytes and activations from its start on, bytes only
/// while it runs, bytes and activations from its end on.
struct Change {
  int64_t acquire = 0, passing = 0, release = 0;
  int32_t activations = 0;
};

class Changes {
public:
  explicit Changes(const Problem &problem) : problem(problem) {}

  Change of(const Action &action) const {
    Change change;
    if (action.kind == Kind::Forward)
      change.activations = 1;
    else if (action.kind != Kind::InputGradient)
      change.activations = -1;
    if (problem.bytes.empty())
      return change;
    const StageBytes &bytes = problem.bytes[action.stage];
    if (change.activations > 0)
      change.acquire = bytes.stash;
    else if (change.activations < 0)
      change.release = bytes.stash;
    if (action.kind != Kind::WeightGradient) {
      if (action.stage > 0)
        change.passing += problem.bytes[action.stage - 1].boundary;
      if (action.stage + 1 < static_cast<int32_t>(problem.bytes.size()))
        change.passing += bytes.boundary;
    }
    return change;
  }

private:
  const Problem &problem;
};

} // namespace

int64_t residentBytes(const Problem &problem, int32_t worker) {
  int64_t sum = 0;
  if (!problem.bytes.empty())
    for (const Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        if (pipeline.workers[s] == worker)
          sum += 2 * problem.bytes[s].weights + problem.bytes[s].optimizer;
  return sum;
}

MemoryPeak memoryPeak(const Problem &problem, std::span<const Action> order,
                      int32_t worker) {
  Changes changes(problem);
  int64_t held = residentBytes(problem, worker);
  int32_t activations = 0;
  MemoryPeak peak;
  peak.bytes = held;
  for (size_t i = 0; i < order.size(); ++i) {
    Change change = changes.of(order[i]);
    held += change.acquire;
    if (held + change.passing > peak.bytes || i == 0) {
      peak.bytes = held + change.passing;
      peak.index = static_cast<int32_t>(i);
    }
    held -= change.release;
    activations += change.activations;
    peak.activations = std::max(peak.activations, activations);
  }
  return peak;
}

std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker) {
  Changes changes(problem);
  int64_t held = residentBytes(problem, worker);
  std::vector<MemorySample> samples = {{0, held}};
  auto add = [&](int64_t time, int64_t bytes) {
    if (samples.back().time == time)
      samples.back().bytes = bytes;
    else
      samples.push_back({time, bytes});
  };
  for (size_t i = 0; i < schedule.workers[worker].size(); ++i) {
    const Action &action = schedule.workers[worker][i];
    Change change = changes.of(action);
    int64_t start = timing.starts[worker][i];
    held += change.acquire;
    add(start, held + change.passing);
    held -= change.release;
    add(start + problem.cost(action.kind, action.stage), held);
  }
  return samples;
}

} // namespace chimera::schedule
