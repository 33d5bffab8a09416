//===- StreamKey.h - The stream of an operation -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_STREAMKEY_H
#define CHIMERA_RUNTIME_CHANNEL_STREAMKEY_H

#include "runtime/program/Program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chimera::runtime {

/// Identifies the stream of an operation. Two operations of a rank have equal
/// keys if the message model executes them on one stream. The first number
/// distinguishes messages between two ranks (1) from all-reduces of the same
/// two ranks (0).
using StreamKey = std::vector<uint32_t>;

inline StreamKey streamKey(program::MessageModel model, uint32_t from,
                           uint32_t to) {
  if (model == program::MessageModel::StreamPerDevice)
    return {};
  if (model == program::MessageModel::StreamPerPair)
    return {1, std::min(from, to), std::max(from, to)};
  return {1, from, to};
}

/// The stream of an all-reduce. `members` are ascending.
inline StreamKey streamKey(program::MessageModel model,
                           const std::vector<uint32_t> &members) {
  if (model == program::MessageModel::StreamPerDevice)
    return {};
  StreamKey key{0};
  key.insert(key.end(), members.begin(), members.end());
  return key;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_STREAMKEY_H
