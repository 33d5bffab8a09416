//===- ActionRules.cpp - Dependencies and times of actions ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/ActionRules.h"

#include <algorithm>

namespace chimera::schedule {

ActionRules::ActionRules(const Problem &problem)
    : problem(problem), ids(problem) {
  auto stages = static_cast<int32_t>(problem.stages.size());
  for (size_t p = 0; p < problem.pipelines.size(); ++p) {
    const Pipeline &pipeline = problem.pipelines[p];
    int32_t most = 1, parts = pipeline.backwardParts;
    for (int32_t count : pipeline.forwards)
      most = std::max(most, count);
    Table &table = tables.emplace_back();
    table.begin = static_cast<int64_t>(rules.size());
    table.row = most + (kKinds - 1) * parts;
    for (int32_t kind = 1; kind < kKinds; ++kind)
      table.at[kind] = most + (kind - 1) * parts;
    rules.resize(rules.size() + stages * table.row);
    Action action{Kind::Forward, static_cast<int32_t>(p), 0, 0};
    for (int32_t &s = action.stage; s < stages; ++s)
      add(action, most, parts);
  }
}

/// Adds all rules for the pipeline and stage of `action`.
void ActionRules::add(Action action, int32_t most, int32_t parts) {
  auto put = [&](Kind kind) {
    action.kind = kind;
    rules[indexOf(action)] = make(action);
  };
  for (int32_t count = 1; count <= most; ++count) {
    action.microBatches = static_cast<uint16_t>(count);
    put(Kind::Forward);
  }
  action.microBatches = 1;
  action.parts = static_cast<uint8_t>(parts);
  for (int32_t part = 0; part < parts; ++part) {
    action.part = static_cast<uint8_t>(part);
    if (problem.splits.anyWhole())
      put(Kind::Backward);
    if (problem.splits.any()) {
      put(Kind::InputGradient);
      put(Kind::WeightGradient);
    }
    if (problem.recomputeOf(action.stage) != Recompute::None)
      put(Kind::Recompute);
  }
}

/// The rule of `action`, which has micro-batch 0. A rule has no dependency of a
/// backward on its recompute, because the recompute runs earlier on the same
/// worker in every valid order. If a recompute is fused, the recompute receives
/// the gradient, and the backward receives nothing.
ActionRule ActionRules::make(const Action &action) const {
  int32_t s = action.stage;
  bool fused = problem.recomputeOf(s) == Recompute::Fused;
  ActionRule rule;
  rule.first = ids.idOf(action);
  rule.cost = problem.cost(action);
  int64_t forward = ids.idOf(ActionIds::kForward, s, 0);
  int64_t backward = ids.idOf(ActionIds::kBackward, s, 0, action.part);
  switch (action.kind) {
  case Kind::Forward:
    addDependency(rule, action, forward, -1);
    addSend(rule, action, 1);
    break;
  case Kind::Backward:
  case Kind::InputGradient:
    rule.sameStage = forward - rule.first;
    addDependency(rule, action, backward, 1);
    if (fused)
      rule.receive = 0, rule.receivesMessage = false;
    addSend(rule, action, -1);
    break;
  case Kind::WeightGradient:
    rule.sameStage = backward - rule.first;
    break;
  case Kind::Recompute:
    rule.sameStage = forward - rule.first;
    if (fused)
      addDependency(rule, action, backward, 1);
    break;
  }
  return rule;
}

/// The worker of the stage that is `step` after the stage of `action`, or -1 if
/// there is no such stage.
int32_t ActionRules::workerAtOffset(const Action &action, int32_t step) const {
  const std::vector<int32_t> &placement =
      problem.pipelines[action.pipeline].workers;
  int32_t stage = action.stage + step;
  return stage < 0 || stage >= std::ssize(placement) ? -1 : placement[stage];
}

/// The three times of a message between the stage of `action` and the stage
/// that is `step` after it, in the order of Link::times. All are 0 if one
/// worker has both stages. Requires that the other stage exists.
std::array<int64_t, 3> ActionRules::times(const Action &action,
                                          int32_t step) const {
  int32_t here = workerAtOffset(action, 0),
          there = workerAtOffset(action, step);
  if (here == there)
    return {};
  std::array<int64_t, 3> times;
  std::ranges::transform(problem.linkBetween(here, there).times(),
                         times.begin(), [&](const MessageTime &of) {
                           return problem.messageTime(
                               of, std::min(action.stage, action.stage + step),
                               action);
                         });
  return times;
}

/// Makes `action` depend on an action of the stage that is `step` after its own
/// stage (-1 for the stage before). `here` is the id of the same action on the
/// stage of `action`.
void ActionRules::addDependency(ActionRule &rule, const Action &action,
                                int64_t here, int32_t step) const {
  rule.sender = workerAtOffset(action, step);
  if (rule.sender < 0)
    return;
  rule.otherStage = ids.atLaterStage(here, step) - rule.first;
  auto [flight, send, receive] = times(action, step);
  rule.flight = flight;
  rule.receive = receive;
  rule.receivesMessage = rule.sender != workerAtOffset(action, 0);
}

void ActionRules::addSend(ActionRule &rule, const Action &action,
                          int32_t step) const {
  rule.receiver = workerAtOffset(action, step);
  if (rule.receiver < 0)
    return;
  rule.send = times(action, step)[1];
  rule.sendsMessage = rule.receiver != workerAtOffset(action, 0);
}

std::optional<Message> ActionRules::sentBy(const Action &action) const {
  const ActionRule &rule = ruleOf(action);
  if (!rule.sendsMessage)
    return std::nullopt;
  return Message{idOf(action, rule),
                 makesGradient(action.kind) ? action.stage - 1 : action.stage,
                 rule.receiver};
}

std::optional<Message> ActionRules::receivedBy(const Action &action) const {
  const ActionRule &rule = ruleOf(action);
  if (!rule.receivesMessage)
    return std::nullopt;
  return Message{idOf(action, rule) + rule.otherStage,
                 action.kind == Kind::Forward ? action.stage - 1 : action.stage,
                 rule.sender};
}

} // namespace chimera::schedule
