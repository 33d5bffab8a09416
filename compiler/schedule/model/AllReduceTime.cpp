//===- AllReduceTime.cpp - The time of an all-reduce ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/AllReduceTime.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace chimera::schedule {

Buckets bucketsOf(int64_t bytes, int64_t most) {
  int64_t each = most / 8 * 8;
  if (most == 0 || bytes <= each)
    return {1, bytes, bytes};
  int64_t count = (bytes - 1) / each + 1;
  return {count, each, bytes - (count - 1) * each};
}

/// The time of an all-reduce in which each bucket takes `rounds` messages and
/// each byte moves (`moves` / `over`) times.
static int64_t timeOf(const MessageTime &message, int64_t rounds, int64_t moves,
                      int64_t over, int64_t bytes, int64_t buckets) {
  __extension__ using Wide = __int128;
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  long double about =
      static_cast<long double>(rounds) * message.alpha * buckets +
      static_cast<long double>(moves) / over * bytes / message.betaBytes *
          message.beta;
  if (about >= static_cast<long double>(kMost / 2))
    return kMost;
  Wide unit = static_cast<Wide>(over) * message.betaBytes;
  Wide product = static_cast<Wide>(moves) * bytes * message.beta;
  return rounds * message.alpha * buckets +
         static_cast<int64_t>((product + unit - 1) / unit);
}

int64_t allReduceTime(const MessageTime &message, int64_t replicas,
                      int64_t bytes, int64_t buckets,
                      AllReduceAlgorithm algorithm) {
  if (replicas < 2)
    return 0;
  int64_t exchanges = std::bit_width(static_cast<uint64_t>(replicas) - 1);
  if (algorithm == AllReduceAlgorithm::Doubling)
    return timeOf(message, exchanges, exchanges, 1, bytes, buckets);
  return timeOf(message, 2 * exchanges, 2 * (replicas - 1), replicas, bytes,
                buckets);
}

int64_t allReduceTime(const LinkClass &links, AllReduceAlgorithm algorithm,
                      int64_t replicas, int64_t bytes, int64_t buckets) {
  if (replicas < 2)
    return 0;
  std::array<MessageTime, 3> messages = links.link.times();
  if (links.allReduceMessage)
    messages = {*links.allReduceMessage};
  int64_t time = timeOf(links.allReduceOverhead, 1, 1, 1, bytes, buckets);
  for (const MessageTime &message : messages)
    time = saturatingAdd(
        time, allReduceTime(message, replicas, bytes, buckets, algorithm));
  return time;
}

} // namespace chimera::schedule
