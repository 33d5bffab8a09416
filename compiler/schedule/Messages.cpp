//===- Messages.cpp - Messages between workers ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Messages.h"

#include <algorithm>

namespace chimera::schedule {

static bool isGradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::InputGradient;
}

/// The message of the action with id `producer` between the stages of `action`
/// and `other`, which are neighbours. None if there is no stage `other` or if
/// it is on the same worker.
static std::optional<Message> between(const Problem &problem,
                                      const Action &action, int64_t producer,
                                      int32_t other) {
  const std::vector<int32_t> &placement =
      problem.pipelines[action.pipeline].workers;
  if (other < 0 || other >= std::ssize(placement) ||
      placement[other] == placement[action.stage])
    return std::nullopt;
  return Message{producer, std::min(other, action.stage), placement[other]};
}

std::optional<Message> sentBy(const Problem &problem, const ActionIds &ids,
                              const Action &action) {
  if (action.kind == Kind::Forward)
    return between(problem, action, ids.idOf(action), action.stage + 1);
  if (isGradient(action.kind))
    return between(problem, action, ids.idOf(action), action.stage - 1);
  return std::nullopt;
}

std::optional<Message> awaitedBy(const Problem &problem, const ActionIds &ids,
                                 const Action &action) {
  bool fused = problem.recomputeOf(action.stage) == Recompute::Fused;
  std::optional<Message> message;
  if (action.kind == Kind::Forward) {
    message = between(problem, action, ids.idOf(action), action.stage - 1);
    if (message)
      message->producer = ids.atLaterStage(message->producer, -1);
  } else if (fused ? action.kind == Kind::Recompute : isGradient(action.kind)) {
    int64_t own = ids.idOf(ActionIds::kBackward, action.stage,
                           action.microBatch, action.part);
    message = between(problem, action, own, action.stage + 1);
    if (message)
      message->producer = ids.atLaterStage(message->producer, 1);
  }
  return message;
}

} // namespace chimera::schedule
