//===- SumOverlapTest.cpp - Computation that overlaps with an all-reduce --===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/SumOverlap.h"

#include "runtime/channel/InProcess.h"
#include "runtime/control/InProcess.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/calibrate/ForwardingChannels.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;
using test::kPatience;

namespace {
constexpr int64_t kSum = 20'000'000; // nanoseconds

/// The time of a rank, in nanoseconds. It passes only if the rank computes (1
/// ns a turn) or waits. So the verdict does not depend on other processes.
using Time = int64_t;

/// Channels whose all-reduces take kSum. The time begins at the start of the
/// all-reduce or, if `doBlock`, when the rank begins to wait.
class SlowSums : public ForwardingChannels {
public:
  SlowSums(Channels &channels, Time &now, bool doBlock)
      : ForwardingChannels(channels), now(now), doBlock(doBlock) {}
  std::unique_ptr<Request> startAllReduce(const ReduceGroup &group,
                                          ElementType type,
                                          std::vector<ConstBytes> contributions,
                                          Bytes sum, Event after) override {
    end = now + kSum;
    return ForwardingChannels::startAllReduce(
        group, type, std::move(contributions), sum, after);
  }
  void wait(Queue &queue, std::unique_ptr<Request> request,
            std::chrono::milliseconds timeout) override {
    now = doBlock ? now + kSum : std::max(now, end);
    ForwardingChannels::wait(queue, std::move(request), timeout);
  }

private:
  Time &now;
  const bool doBlock;
  Time end = 0;
};

double hiddenPartOf(bool doBlock) {
  constexpr uint32_t kRanks = 2;
  const ReduceGroup group{0, {0, 1}};
  auto controls = makeInProcessControls(kRanks);
  auto channels = makeInProcessChannels(kRanks);
  double hidden = -1;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      Time now = 0;
      const ComputationClock clock{[&](int64_t turns) { now += turns; },
                                   [&] { return now; }};
      SlowSums slow(*channels[rank], now, doBlock);
      slow.prepare({.pairs = {}, .groups = {group}});
      double own =
          hiddenPart(*controls[rank], slow, group, /*bytes=*/64,
                     /*budget=*/1s, /*clockAhead=*/0, kPatience, clock);
      if (rank == 0)
        hidden = own;
    });
  for (std::thread &thread : threads)
    thread.join();
  return hidden;
}

TEST(HiddenPart, IsZeroForABlockingSum) { EXPECT_EQ(hiddenPartOf(true), 0); }

TEST(HiddenPart, IsOneForASumThatProgresses) {
  EXPECT_EQ(hiddenPartOf(false), 1);
}

TEST(HiddenPart, TheHostComputesInTime) {
  const ComputationClock &clock = computationOfHost();
  const int64_t begin = clock.nanoseconds();
  clock.compute(100'000);
  EXPECT_GT(clock.nanoseconds(), begin);
}
} // namespace
