//===- StopVote.cpp - Ranks agree to stop ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StopVote.h"

#include <cstring>
#include <numeric>

using namespace chimera::runtime;

StopVote::StopVote(Transport &transport, uint32_t group,
                   std::function<bool()> wants,
                   std::chrono::milliseconds timeout)
    : transport(transport), everyone{group,
                                     std::vector<uint32_t>(transport.ranks())},
      wants(std::move(wants)), timeout(timeout) {
  std::memset(sum.get(), 0, sizeof(uint64_t));
  std::iota(everyone.contributions.begin(), everyone.contributions.end(), 0);
}

bool StopVote::mayBegin() {
  finish();
  uint64_t votes = 0;
  Bytes bytes(sum.get(), sizeof(votes));
  std::memcpy(&votes, bytes.data(), bytes.size());
  if (votes != 0)
    return false;
  votes = wants() ? 1 : 0;
  std::memcpy(bytes.data(), &votes, bytes.size());
  underWay =
      transport.startAllReduce(everyone, ElementType::UInt64, {bytes}, bytes);
  return true;
}

void StopVote::finish() {
  if (underWay)
    transport.wait(std::move(underWay), timeout);
}
