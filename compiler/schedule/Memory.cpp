//===- Memory.cpp - What a worker holds ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Memory.h"

#include "compiler/schedule/Steps.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace chimera::schedule {

namespace {

/// What an action changes: bytes from its start on, bytes only while it runs,
/// bytes from its end on; likewise how many micro-batches there are
/// activations of.
struct Change {
  int64_t acquire = 0, passing = 0, release = 0;
  int32_t more = 0, less = 0;
};

/// Walks one worker's order. The stash of a piece, a micro-batch or a part of
/// one, comes with its forward, or with its recompute; until that the forward's
/// input stays instead of it.
class Changes {
public:
  Changes(const Problem &problem, std::span<const Action> order)
      : problem(problem), stages(static_cast<int32_t>(problem.stages.size())) {
    if (!problem.recompute.empty())
      for (const Action &action : order)
        if (action.kind == Kind::Recompute)
          recomputed.insert(keyOf(action, action.microBatch, action.part));
  }

  /// Requires the actions in their order.
  Change next(const Action &action) {
    Change change;
    passing(action, change);
    switch (action.kind) {
    case Kind::Forward:
      if (recomputed.empty() && partsOf(action) == 1) {
        change.acquire = stash(action) * action.microBatches;
        change.more = action.microBatches;
      } else {
        forward(action, change);
      }
      break;
    case Kind::Recompute:
      change.acquire = piece(action, stash(action));
      change.release = piece(action, input(action));
      change.more = holdsOneMore(action);
      break;
    case Kind::Backward:
    case Kind::WeightGradient:
      change.release = piece(action, stash(action));
      change.less = action.parts == 1 || --held[keyOf(action)] == 0;
      break;
    case Kind::InputGradient:
      break;
    }
    return change;
  }

private:
  /// Every piece of a forward: its stash, or its input until it is recomputed.
  void forward(const Action &action, Change &change) {
    Action each = action;
    each.microBatches = 1;
    each.parts = partsOf(action);
    for (int32_t i = 0; i < action.microBatches; ++i, ++each.microBatch)
      for (int32_t part = 0; part < each.parts; ++part) {
        each.part = static_cast<uint8_t>(part);
        bool again = recomputed.contains(keyOf(action, each.microBatch, part));
        change.acquire += piece(each, again ? input(action) : stash(action));
        change.more += again ? 0 : holdsOneMore(each);
      }
  }

  /// 1 where `action` brings the first piece of its micro-batch.
  int32_t holdsOneMore(const Action &action) {
    return action.parts == 1 || held[keyOf(action)]++ == 0;
  }

  void passing(const Action &action, Change &change) const {
    if (problem.bytes.empty() || action.kind == Kind::WeightGradient ||
        action.kind == Kind::Recompute)
      return;
    int64_t bytes = input(action);
    if (action.stage + 1 < stages)
      bytes += problem.bytes[action.stage].boundary;
    change.passing = piece(action, bytes) * action.microBatches;
  }

  int64_t stash(const Action &action) const {
    return problem.bytes.empty() ? 0 : problem.bytes[action.stage].stash;
  }
  int64_t input(const Action &action) const {
    return problem.bytes.empty() || action.stage == 0
               ? 0
               : problem.bytes[action.stage - 1].boundary;
  }
  static int64_t piece(const Action &action, int64_t bytes) {
    return action.parts == 1 ? bytes : share(bytes, action.part, action.parts);
  }
  uint8_t partsOf(const Action &action) const {
    return static_cast<uint8_t>(
        problem.pipelines[action.pipeline].backwardParts);
  }
  /// Of a micro-batch on a stage, or of a part of it.
  int64_t keyOf(const Action &action, int64_t microBatch,
                int32_t part = 0) const {
    return ((microBatch * stages) + action.stage) * (UINT8_MAX + 1) + part;
  }
  int64_t keyOf(const Action &action) const {
    return keyOf(action, action.microBatch);
  }

  const Problem &problem;
  int32_t stages;
  std::unordered_set<int64_t> recomputed; ///< pieces
  /// Of micro-batches in parts: how many pieces there are activations of.
  std::unordered_map<int64_t, int32_t> held;
};

} // namespace

int64_t residentBytes(const Problem &problem, int32_t worker) {
  int64_t sum = 0;
  if (!problem.bytes.empty())
    for (const Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        if (pipeline.workers[s] == worker)
          sum += (1 + weightVersions(problem, static_cast<int32_t>(s))) *
                     problem.bytes[s].weights +
                 problem.bytes[s].optimizer;
  return sum;
}

MemoryPeak memoryPeak(const Problem &problem, std::span<const Action> order,
                      int32_t worker) {
  Changes changes(problem, order);
  int64_t held = residentBytes(problem, worker);
  int32_t activations = 0;
  MemoryPeak peak;
  peak.bytes = held;
  for (size_t i = 0; i < order.size(); ++i) {
    Change change = changes.next(order[i]);
    held += change.acquire;
    if (held + change.passing > peak.bytes || i == 0) {
      peak.bytes = held + change.passing;
      peak.index = static_cast<int32_t>(i);
    }
    held -= change.release;
    activations += change.more;
    peak.activations = std::max(peak.activations, activations);
    activations -= change.less;
  }
  return peak;
}

std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker) {
  Changes changes(problem, schedule.workers[worker]);
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
    Change change = changes.next(action);
    int64_t start = timing.starts[worker][i];
    held += change.acquire;
    add(start, held + change.passing);
    held -= change.release;
    add(start + problem.cost(action), held);
  }
  return samples;
}

} // namespace chimera::schedule
