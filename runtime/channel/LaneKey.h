//===- LaneKey.h - Which operations share a stream --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_LANEKEY_H
#define CHIMERA_RUNTIME_CHANNEL_LANEKEY_H

#include "runtime/program/Program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chimera::runtime {

/// Operations of a rank whose keys are equal are on one stream, as far as the
/// model of messages orders them. The first number tells messages between two
/// ranks from their sums.
using LaneKey = std::vector<uint32_t>;

inline LaneKey laneKey(program::MessageModel model, uint32_t from,
                       uint32_t to) {
  if (model == program::MessageModel::StreamPerDevice)
    return {};
  if (model == program::MessageModel::StreamPerPair)
    return {1, std::min(from, to), std::max(from, to)};
  return {1, from, to};
}

/// Of sums over `members`, ascending.
inline LaneKey laneKey(program::MessageModel model,
                       const std::vector<uint32_t> &members) {
  if (model == program::MessageModel::StreamPerDevice)
    return {};
  LaneKey key{0};
  key.insert(key.end(), members.begin(), members.end());
  return key;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_LANEKEY_H
