//===- TorchMessages.cpp - Messages of PyTorch programs -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchMessages.h"

namespace chimera::schedule::torch {

int32_t otherStage(const Action &action) {
  const bool isLater =
      action.kind == Kind::SendForward || action.kind == Kind::ReceiveBackward;
  return action.stage + (isLater ? 1 : -1);
}

Action otherEnd(const Action &action) {
  const Kind kind = action.kind == Kind::SendForward    ? Kind::ReceiveForward
                    : action.kind == Kind::SendBackward ? Kind::ReceiveBackward
                    : action.kind == Kind::ReceiveForward ? Kind::SendForward
                                                          : Kind::SendBackward;
  return {kind, otherStage(action), action.microBatch};
}

std::optional<Edge> edgeOf(const Action &action, int32_t rank,
                           const std::vector<int32_t> &rankOfStage) {
  const int32_t stage = otherStage(action);
  if (stage < 0 || stage >= static_cast<int32_t>(rankOfStage.size()) ||
      rankOfStage[stage] == rank)
    return std::nullopt;
  const int32_t other = rankOfStage[stage];
  return isSend(action.kind) ? Edge{rank, other} : Edge{other, rank};
}

Messages messagesOf(const File &file, const std::vector<int32_t> &rankOfStage) {
  Messages messages;
  forEachAction(file, [&](const Place &place, const Action &action) {
    if (!isSend(action.kind) && !isReceive(action.kind))
      return;
    if (std::optional<Edge> edge = edgeOf(action, place.rank, rankOfStage)) {
      EdgeMessages &all = messages[*edge];
      (isSend(action.kind) ? all.sends : all.receives)
          .push_back({place, action});
    }
  });
  return messages;
}

} // namespace chimera::schedule::torch
