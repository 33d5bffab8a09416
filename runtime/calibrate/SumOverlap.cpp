//===- SumOverlap.cpp - Overlap of sums and computation -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumOverlap.h"

#include "runtime/calibrate/MessageTimes.h"
#include "runtime/control/Messages.h"
#include "runtime/device/Block.h"
#include "runtime/device/Host.h"
#include "runtime/interpreter/Status.h"

#include <algorithm>

using namespace chimera::runtime;

namespace {
constexpr int kFewestOverlapRounds = 3, kMostOverlapRounds = 15;

/// Computes without memory. The compiler cannot remove this arithmetic.
void compute(int64_t turns) {
  volatile uint64_t sink = 1;
  uint64_t x = sink;
  for (int64_t i = 0; i < turns; ++i)
    x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
}

/// Runs rounds in which all ranks sum, compute, or do both.
class Rounds {
public:
  Rounds(Control &control, Channels &channels, const ReduceGroup &group,
         uint64_t bytes, int64_t clockAhead, std::chrono::milliseconds timeout,
         const ComputationClock &clock)
      : control(control), channels(channels), group(group),
        memory(makeBlock(bytes)), values(memory.get(), bytes),
        clockAhead(clockAhead), timeout(timeout), clock(clock) {
    std::ranges::fill(values, std::byte(0)); // sums of zeros stay zero
  }

  /// The duration in nanoseconds of a round at the slowest rank, returned at
  /// all ranks. In a round, a rank executes `turns` iterations of arithmetic
  /// and, if `sums`, an all-reduce at the same time.
  int64_t run(bool sums, int64_t turns) {
    sleepUntil(agreeOnBegin(control, std::chrono::milliseconds(5), timeout) +
               clockAhead);
    const int64_t begin = clock.nanoseconds();
    std::unique_ptr<Request> request;
    if (sums)
      request = channels.startAllReduce(group, ElementType::Float32, {values},
                                        values);
    channels.beginComputing();
    clock.compute(turns);
    if (request)
      channels.wait(hostQueue(), std::move(request), timeout);
    int64_t most = std::max<int64_t>(clock.nanoseconds() - begin, 1);
    for (int64_t other : gatherValues(control, 0, most, timeout))
      most = std::max(most, other);
    if (control.rank() > 0)
      return receiveValue<int64_t>(control, 0, timeout);
    for (uint32_t rank = 1; rank < control.ranks(); ++rank)
      sendValue(control, rank, most, timeout);
    return most;
  }

private:
  Control &control;
  Channels &channels;
  const ReduceGroup &group;
  const Block memory;
  const Bytes values;
  const int64_t clockAhead;
  const std::chrono::milliseconds timeout;
  const ComputationClock &clock;
};
} // namespace

const ComputationClock &chimera::runtime::computationOfHost() {
  static const ComputationClock clock{compute, steadyNanoseconds};
  return clock;
}

double chimera::runtime::hiddenPart(Control &control, Channels &channels,
                                    const ReduceGroup &group, uint64_t bytes,
                                    std::chrono::milliseconds budget,
                                    int64_t clockAhead,
                                    std::chrono::milliseconds timeout,
                                    const ComputationClock &clock) {
  Rounds all(control, channels, group, bytes, clockAhead, timeout, clock);
  all.run(/*sums=*/true, /*turns=*/0); // the first round opens connections
  // Scale the computation so that it takes 1.5 times as long as the sum.
  constexpr int64_t kTurns = 1'000'000;
  int64_t sum = INT64_MAX, some = INT64_MAX;
  for (int round = 0; round < kFewestOverlapRounds; ++round) {
    sum = std::min(sum, all.run(true, 0));
    some = std::min(some, all.run(false, kTurns));
  }
  const auto turns = static_cast<int64_t>(1.5 * static_cast<double>(sum) /
                                          static_cast<double>(some) * kTurns);
  // The number of rounds in the budget. One round of each of the three kinds
  // below takes together 5 times as long as the sum (1 + 1.5 + 2.5, if nothing
  // overlaps).
  const int64_t rounds =
      std::clamp(std::chrono::nanoseconds(budget).count() / (5 * sum),
                 int64_t{kFewestOverlapRounds}, int64_t{kMostOverlapRounds});
  int64_t computed = INT64_MAX, both = INT64_MAX;
  for (int64_t round = 0; round < rounds; ++round) {
    sum = std::min(sum, all.run(true, 0));
    computed = std::min(computed, all.run(false, turns));
    both = std::min(both, all.run(true, turns));
  }
  // The hidden part is at most as long as the shorter of sum and computation.
  // Limit it to [0, 1], because measured times vary.
  return std::clamp(static_cast<double>(sum + computed - both) /
                        static_cast<double>(std::min(sum, computed)),
                    0., 1.);
}
