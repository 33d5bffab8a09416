//===- Schedule.cpp - An order of actions ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Schedule.h"

#include <algorithm>

namespace chimera::schedule {

std::string describe(const Problem &problem, Action action) {
  const bool hasSeveral = problem.pipelines.size() > 1;
  int32_t later = action.microBatch - problem.microBatches();
  if (later < 0 || later >= problem.microBatches() || problem.steps != 2)
    return describe(action, hasSeveral);
  action.microBatch = later;
  return describe(action, hasSeveral) + " of the second step";
}

ActionIds::ActionIds(const Problem &problem)
    : stages(static_cast<int32_t>(problem.stages.size())),
      microBatches(problem.microBatches() * problem.steps),
      splits(problem.splits), isSplit(splits.any()),
      isMixed(isSplit && splits.anyWhole()), covers(microBatches) {
  const int32_t parts = maxParts(problem.pipelines);
  int64_t pieces = 0;
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    const Pipeline &pipeline = problem.pipelines[p];
    auto own = static_cast<uint8_t>(pipeline.backwardParts);
    for (int32_t step = 0; step < problem.steps; ++step) {
      size_t range = 0;
      int32_t left = 0, first = 0, count = 1;
      for (int32_t m : pipeline.microBatches) {
        m += step * problem.microBatches();
        if (left == 0) {
          left = count =
              pipeline.forwards.empty() ? 1 : pipeline.forwards[range++];
          first = m;
          needed += stages;
        }
        --left;
        covers[m] = {static_cast<int32_t>(p), first,
                     static_cast<uint16_t>(count), own};
        pieces += own;
      }
    }
  }
  bool any = false;
  for (int32_t s = 0; s < stages; ++s) {
    recompute.push_back(problem.recomputeOf(s));
    any |= isRecomputed(s);
    int64_t kinds =
        (isSplit && !isMixed ? 2 : 1) + (recompute[s] == Recompute::Fused);
    needed += kinds * pieces;
    for (int32_t m = 0; isMixed && m < microBatches; ++m)
      needed += splits.isSplit(s, m) ? covers[m].parts : 0;
  }
  eachPart = (isSplit ? 2 : 1) + any;
  width = 1 + parts * eachPart;
  row = microBatches * width;
  kindIndices[static_cast<int>(Kind::Forward)] = kForward;
  kindIndices[static_cast<int>(Kind::Backward)] =
      isSplit && !isMixed ? -1 : kBackward;
  kindIndices[static_cast<int>(Kind::InputGradient)] = isSplit ? kBackward : -1;
  kindIndices[static_cast<int>(Kind::WeightGradient)] =
      isSplit ? kWeightGradient : -1;
  kindIndices[static_cast<int>(Kind::Recompute)] = any ? kRecompute : -1;
  offsets[kForward] = 0;
  offsets[kBackward] = 1;
  offsets[kWeightGradient] = 2;
  offsets[kRecompute] = isSplit ? 3 : 2;
}

std::optional<int64_t> ActionIds::find(Kind kind, int32_t stage,
                                       int32_t microBatch) const {
  if (microBatch < 0 || microBatch >= microBatches)
    return std::nullopt;
  const Cover &cover = covers[microBatch];
  if (kind == Kind::Forward)
    return find({kind, cover.pipeline, stage, cover.first, cover.count});
  return find({kind, cover.pipeline, stage, microBatch, 1, 0, cover.parts});
}

bool ActionIds::has(int64_t id) const {
  auto within = static_cast<int32_t>(id % width);
  auto microBatch = static_cast<int32_t>(id / width % microBatches);
  if (within == 0)
    return covers[microBatch].first == microBatch;
  if ((within - 1) / eachPart >= covers[microBatch].parts)
    return false;
  int32_t offset = 1 + (within - 1) % eachPart;
  auto stage = static_cast<int32_t>(id / width / microBatches);
  if (offset == offsets[kRecompute])
    return isRecomputed(stage);
  return offset == offsets[kBackward] || !isMixed ||
         splits.isSplit(stage, microBatch);
}

bool ActionIds::isOptional(int64_t id) const {
  auto within = static_cast<int32_t>(id % width);
  return within > 0 && 1 + (within - 1) % eachPart == offsets[kRecompute] &&
         recompute[id / width / microBatches] == Recompute::Early;
}

Action ActionIds::action(int64_t id) const {
  auto within = static_cast<int32_t>(id % width);
  auto microBatch = static_cast<int32_t>(id / width % microBatches);
  auto stage = static_cast<int32_t>(id / width / microBatches);
  const Cover &cover = covers[microBatch];
  if (within == 0)
    return {Kind::Forward, cover.pipeline, stage, microBatch, cover.count};
  int32_t offset = 1 + (within - 1) % eachPart;
  Kind kind = offset == offsets[kRecompute]        ? Kind::Recompute
              : !splits.isSplit(stage, microBatch) ? Kind::Backward
              : offset == offsets[kBackward]       ? Kind::InputGradient
                                                   : Kind::WeightGradient;
  return {kind,       cover.pipeline,
          stage,      microBatch,
          1,          static_cast<uint8_t>((within - 1) / eachPart),
          cover.parts};
}

std::vector<int32_t> pipelineOfMicroBatch(const Problem &problem) {
  std::vector<int32_t> result(problem.microBatches(), 0);
  for (size_t p = 0; p < problem.pipelines.size(); ++p)
    for (int32_t m : problem.pipelines[p].microBatches)
      result[m] = static_cast<int32_t>(p);
  return result;
}

bool hasJoined(const Schedule &schedule) {
  return std::ranges::any_of(schedule.workers, [](const auto &actions) {
    return std::ranges::any_of(actions, &Action::joinedWithNext);
  });
}

Schedule splitBackwards(const Schedule &schedule) {
  return replaceActions(schedule, [](std::vector<Action> &out, Action action) {
    if (action.kind == Kind::Backward) {
      action.kind = Kind::InputGradient;
      out.push_back(action);
      action.kind = Kind::WeightGradient;
    }
    out.push_back(action);
  });
}

} // namespace chimera::schedule
