//===- TorchWriter.cpp - Writes schedule files of PyTorch -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchWriter.h"

#include "compiler/schedule/formats/TorchCsv.h"

#include <algorithm>

namespace chimera::schedule::torch {

/// Whether a forward is paired with an input gradient.
static bool pairsInputGradients(const Schedule &schedule) {
  return std::ranges::any_of(schedule.workers, [](const auto &actions) {
    for (size_t i = 1; i < actions.size(); ++i)
      if (endsPair(actions, i) && actions[i].kind != schedule::Kind::Backward)
        return true;
    return false;
  });
}

static bool hasJointWeightGradients(const Schedule &schedule) {
  return std::ranges::any_of(schedule.workers, [](const auto &actions) {
    return std::ranges::any_of(actions, [](const auto &action) {
      return action.joinedWithNext && !beginsPair(action);
    });
  });
}

/// The first property of a schedule that the format cannot hold, such as "a
/// recompute". Empty if there is none.
static std::string unsupportedProperty(const Problem &problem,
                                       const Schedule &schedule) {
  if (stepsOverlap(problem.updates))
    return "a schedule without a flush";
  if (std::ranges::any_of(problem.recompute,
                          [](Recompute how) { return how != Recompute::None; }))
    return "a recompute";
  for (const Pipeline &pipeline : problem.pipelines) {
    for (size_t stage = 0; stage < pipeline.workers.size(); ++stage)
      if (const int32_t first = problem.pipelines[0].workers[stage];
          pipeline.workers[stage] != first)
        return "a stage on two ranks (stage " + std::to_string(stage) +
               " is on workers " + std::to_string(first) + " and " +
               std::to_string(pipeline.workers[stage]) + ")";
    if (std::ranges::any_of(pipeline.forwards,
                            [](int32_t count) { return count > 1; }))
      return "a forward of several micro-batches";
    if (pipeline.backwardParts > 1)
      return "a backward in parts";
  }
  if (pairsInputGradients(schedule))
    return "a forward that is paired with an input gradient";
  if (hasJointWeightGradients(schedule))
    return "a joint weight gradient";
  return "";
}

static Kind kindOf(schedule::Kind kind) {
  switch (kind) {
  case schedule::Kind::Backward:
    return Kind::Backward;
  case schedule::Kind::InputGradient:
    return Kind::InputGradient;
  case schedule::Kind::WeightGradient:
    return Kind::WeightGradient;
  case schedule::Kind::Forward:
  case schedule::Kind::Recompute: // there are none
    break;
  }
  return Kind::Forward;
}

static Action torchActionOf(const schedule::Action &action) {
  return {kindOf(action.kind), action.stage, action.microBatch};
}

std::optional<std::string> write(const Problem &problem,
                                 const Schedule &schedule, std::string &error) {
  if (const std::string found = unsupportedProperty(problem, schedule);
      !found.empty()) {
    error =
        "expected a schedule that files of PyTorch can describe, got " + found;
    return std::nullopt;
  }
  std::string text;
  for (size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    int64_t next = 0; // slot of the next cell
    const std::vector<schedule::Action> &actions = schedule.workers[worker];
    for (size_t i = 0; i < actions.size(); ++i) {
      const int64_t slot =
          schedule.hasSlots() ? schedule.slots[worker][i] : next;
      text.append(static_cast<size_t>(slot - next + (i > 0)), ',');
      Cell cell{{torchActionOf(actions[i])}, 0, 0};
      next = slot + 1;
      if (actions[i].joinedWithNext) {
        cell.actions.push_back(torchActionOf(actions[++i]));
        ++next; // the slot of the second action
      }
      text += nameOf(cell);
    }
    text += "\r\n";
  }
  return text;
}

} // namespace chimera::schedule::torch
