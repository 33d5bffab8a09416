//===- TorchMessages.h - Messages of PyTorch programs -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHMESSAGES_H
#define CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHMESSAGES_H

#include "compiler/schedule/formats/TorchCsv.h"

#include <compare>
#include <map>

namespace chimera::schedule::torch {

/// The stage at the other end of a send or receive.
int32_t otherStage(const Action &action);
/// The receive of a send, or the send of a receive.
Action otherEnd(const Action &action);

/// The ranks at both ends of a message.
struct Edge {
  int32_t from, to;
  auto operator<=>(const Edge &) const = default;
};

/// The edge of a send or receive of `rank`. Nothing if the other stage does not
/// exist or is on the same rank.
std::optional<Edge> edgeOf(const Action &action, int32_t rank,
                           const std::vector<int32_t> &rankOfStage);

/// A send or a receive, and the cell that has it.
struct Message {
  Place place;
  Action action;
};

/// The messages of an edge, each list in the order of its rank. Receive k
/// receives send k, whatever their tensors are.
struct EdgeMessages {
  std::vector<Message> sends, receives;
};
using Messages = std::map<Edge, EdgeMessages>;

Messages messagesOf(const File &file, const std::vector<int32_t> &rankOfStage);

} // namespace chimera::schedule::torch

#endif // CHIMERA_COMPILER_SCHEDULE_FORMATS_TORCHMESSAGES_H
