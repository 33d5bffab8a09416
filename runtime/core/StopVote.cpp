//===- StopVote.cpp - Ranks agree to stop ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/StopVote.h"

#include <numeric>

using namespace chimera::runtime;

StopVote::StopVote(Transport &transport, uint32_t group,
                   std::function<bool()> wants,
                   std::chrono::milliseconds timeout)
    : transport(transport), everyone{group,
                                     std::vector<uint32_t>(transport.ranks())},
      wants(std::move(wants)), timeout(timeout) {
  std::iota(everyone.contributions.begin(), everyone.contributions.end(), 0);
}

bool StopVote::mayBegin() {
  finish();
  if (sum != 0)
    return false;
  own = wants() ? 1 : 0;
  underWay = transport.startAllReduce(
      everyone, ElementType::UInt64, {std::as_bytes(std::span(&own, 1))},
      std::as_writable_bytes(std::span(&sum, 1)));
  return true;
}

void StopVote::finish() {
  if (underWay)
    transport.wait(std::move(underWay), timeout);
}
