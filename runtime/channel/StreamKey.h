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

/// Identifies the stream that executes a message or an all-reduce. Two
/// operations of a rank have equal keys if the message model executes them on
/// one stream. If all operations of a device share a stream, the key is empty.
/// Otherwise the first number is 1 for a message and 0 for an all-reduce. So a
/// message between two ranks and an all-reduce of these two have different
/// keys.
using StreamKey = std::vector<uint32_t>;

inline StreamKey streamKey(program::MessageModel model, uint32_t from,
                           uint32_t to) {
  if (model == program::MessageModel::StreamPerDevice)
    return {};
  if (model == program::MessageModel::StreamPerPair)
    return {1, std::min(from, to), std::max(from, to)};
  return {1, from, to};
}

/// The key of an all-reduce. `members` are ascending.
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
