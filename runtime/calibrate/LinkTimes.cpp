//===- LinkTimes.cpp - Times of one kind of link --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/LinkTimes.h"

using namespace chimera::runtime;

void MessagesBySize::add(uint64_t bytes, const MessageCost &cost) {
  // If the two ends together are busy for longer than the message takes,
  // transit() returns 0. Then the sum of both ends is the time of the whole
  // message.
  const double all = cost.send + cost.transit() + cost.receive;
  send.push_back({bytes, cost.send, all});
  transit.push_back({bytes, cost.transit(), all});
  receive.push_back({bytes, cost.receive, all});
  whole.push_back({bytes, all});
}

LinkTimes MessagesBySize::fit() const {
  LinkTimes times{.send = fitLine(send),
                  .transit = fitLine(transit),
                  .receive = fitLine(receive),
                  .sum = {}};
  times.residual = residualOf(
      {.base = times.send.base + times.transit.base + times.receive.base,
       .perByte =
           times.send.perByte + times.transit.perByte + times.receive.perByte},
      whole);
  return times;
}
