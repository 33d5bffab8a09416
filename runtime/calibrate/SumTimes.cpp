//===- SumTimes.cpp - Duration of an all-reduce ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumTimes.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/control/Messages.h"

#include <algorithm>
#include <bit>
#include <map>

using namespace chimera::runtime;

std::vector<int64_t>
chimera::runtime::measureSums(Control &control, Channels &channels,
                              MeasuredQueue &queue, const ReduceGroup &group,
                              uint64_t bytes, int rounds, int64_t clockAhead,
                              std::chrono::milliseconds timeout) {
  // The values are zeros, so they are still zeros after any number of sums.
  const Block memory = queue.zeros(bytes);
  const Bytes sum(memory.get(), bytes);
  struct Round {
    uint32_t group;
    int64_t begin, end; // by rank 0's clock
  };
  std::vector<int64_t> times;
  for (int round = 0; round < rounds; ++round) {
    // If a rank gets the time too late, it is the last to start. This is
    // harmless, because the duration begins with the last start.
    sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(5), timeout) +
               clockAhead);
    const Moment ready = queue.afterWork();
    channels.wait(queue.get(),
                  channels.startAllReduce(group, ElementType::Float32, {sum},
                                          sum, ready.event),
                  timeout);
    const Moment summed = queue.recordPoint();
    const Round own{.group = group.id,
                    .begin = queue.timeOf(ready) - clockAhead,
                    .end = queue.timeOf(summed) - clockAhead};
    std::map<uint32_t, Round> groups;
    for (const Round &of : gatherValues(control, 0, own, timeout)) {
      Round &whole = groups.try_emplace(of.group, of).first->second;
      whole.begin = std::max(whole.begin, of.begin);
      whole.end = std::max(whole.end, of.end);
    }
    int64_t longest = 0;
    for (const auto &[id, whole] : groups)
      longest = std::max(longest, whole.end - whole.begin);
    if (control.rank() == 0)
      times.push_back(longest);
  }
  return times;
}

SumLine chimera::runtime::fitSums(std::span<const TimedSize> sums,
                                  uint32_t ranks) {
  const auto first = std::ranges::lower_bound(
      sums, kLeastGradient, {}, [](const TimedSize &sum) { return sum.bytes; });
  const Line line =
      fitLine({first, sums.end()}, /*leastBase=*/sums.front().nanoseconds);
  return {.message = messageOfSum(line, ranks),
          .smallest = sums.front(),
          .smallestByLine = line.nanosecondsFor(sums.front().bytes)};
}

Line chimera::runtime::messageOfSum(const Line &sum, uint32_t ranks) {
  const double messages = 2 * std::bit_width(ranks - 1);
  const double moves = 2 * (ranks - 1.0) / ranks;
  return {sum.base / messages, sum.perByte / moves, sum.residual};
}
