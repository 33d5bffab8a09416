//===- WindowsTest.cpp - Costs of receive windows -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Windows.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <random>

namespace chimera::schedule {
namespace {

/// GPipe on two workers. Forwards take 1 on P0 and 2 on P1, and messages take
/// 4. With a window of 1, P1 posts the receive of F1 only after it has received
/// F0, at time 5. P0 sent F1 at time 2.
///
///   P0  F0 F1
///   P1  .  .  .  .  .  F0 =  .  .  F1 =
TEST(Windows, DelayEarlySends) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.stages[1] = {2, 1, 1, 1};
  c.problem.link.alpha = 4;
  Windows windows(c.problem, c.schedule);
  EXPECT_EQ(windows.minWindow(), 1);
  Timing one = windows.simulate(1, false);
  EXPECT_TRUE(one.complete);
  EXPECT_EQ(one.starts[1], (std::vector<int64_t>{5, 9, 11, 12}));
  // P0 gets the second gradient later than without windows.
  EXPECT_EQ(one.starts[0], (std::vector<int64_t>{0, 1, 16, 20}));
  Timing two = windows.simulate(2, false);
  EXPECT_EQ(two.starts, simulate(c.problem, c.schedule).starts);
  EXPECT_EQ(two.starts[1], (std::vector<int64_t>{5, 7, 9, 10}));
  EXPECT_EQ(windows.fastestWindow(), 2);
}

/// The time for which a message occupies its receiver is a part of the receive.
/// The next receive is posted only after it.
TEST(Windows, PostWhenTheMessageHasBeenReceived) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.link = {{3, 0, 1}, {1, 0, 1}, {2, 0, 1}};
  Windows windows(c.problem, c.schedule);
  // The messages are sent at 2 and 4. With a window of 1, the first one arrives
  // at 5 and is received at 7, and the second one arrives at 10.
  EXPECT_EQ(windows.simulate(1, false).starts[1][0], 7);
  EXPECT_EQ(windows.simulate(1, false).starts[1][1], 12);
  EXPECT_EQ(windows.simulate(2, false).starts[1][1], 10);
}

/// If messages take no time on their way, a window of 1 is enough, even if
/// sending and receiving take long.
TEST(Windows, AreSmallIfMessagesTakeNoTime) {
  Case c = makeCase("gpipe", 4, 8);
  c.problem.link.send.alpha = 3;
  c.problem.link.receive.alpha = 5;
  Windows windows(c.problem, c.schedule);
  EXPECT_EQ(windows.fastestWindow(), 1);
  EXPECT_EQ(windows.simulate(1, false).makespan,
            simulate(c.problem, c.schedule).makespan);
}

/// P0 sends F0 and then F1. P1 runs them in the opposite order.
TEST(Windows, HoldOvertakenMessages) {
  Case c = makeCase("gpipe", 2, 3);
  c.problem.bytes.assign(2, {0, 0, 0, 0, 10});
  std::rotate(c.schedule.workers[1].begin(), c.schedule.workers[1].begin() + 2,
              c.schedule.workers[1].begin() + 3);
  ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
  Windows windows(c.problem, c.schedule);
  EXPECT_EQ(windows.minWindow(), 3);
  for (int32_t k : {1, 2}) {
    EXPECT_FALSE(windows.simulate(k, false).complete);
    EXPECT_TRUE(windows.simulate(k, true).complete);
  }
  EXPECT_TRUE(windows.simulate(3, false).complete);
  EXPECT_EQ(windows.bytes(1, true), (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(windows.bytes(2, true), (std::vector<int64_t>{20, 30}));
  EXPECT_EQ(windows.bytes(9, false), (std::vector<int64_t>{30, 30}));
}

/// A window must have room for the largest message: two micro-batches with
/// doubling, and one micro-batch with halving.
TEST(Windows, HoldTheLargestMessage) {
  for (auto [how, bytes] :
       {std::pair(Concatenation::Doubling, 14), {Concatenation::Halving, 7}}) {
    Case c =
        makeCase("chimera", 2, 4, {2, 2, 2, 2, 2}, false, chimeraWith(2, how));
    c.problem.bytes.assign(2, {0, 0, 0, 0, 7});
    EXPECT_EQ(Windows(c.problem, c.schedule).bytes(1, false),
              (std::vector<int64_t>{bytes, bytes}));
  }
}

TEST(Windows, OfOneWorkerAreNone) {
  Case c = makeCase("gpipe", 1, 3);
  c.problem.link.alpha = 2;
  Windows windows(c.problem, c.schedule);
  EXPECT_EQ(windows.minWindow(), 1);
  EXPECT_EQ(windows.fastestWindow(), 1);
  EXPECT_EQ(windows.bytes(7, true), std::vector<int64_t>{0});
}

class EveryWindow : public testing::TestWithParam<int32_t> {};

/// The larger the window, the shorter the step, until it takes as long as
/// without windows. A run with windows completes if and only if the window is
/// at least needed().
TEST_P(EveryWindow, FallsToNone) {
  int32_t d = GetParam();
  std::mt19937 random(d);
  for (const Scheme &scheme : schemes())
    for (const Choice &choice : choices(scheme, d))
      for (int32_t n : {1, d, 2 * d, 3 * d + 1}) {
        if (!canPlan(scheme, d, n, choice))
          continue;
        SCOPED_TRACE(nameOf(scheme, d, n, choice));
        auto time = [&](int64_t least) {
          return least + static_cast<int64_t>(random() % 6);
        };
        Case c = makeCase(scheme.name, d, n, {}, random() % 2, choice);
        for (StageCost &cost : c.problem.stages)
          cost = {time(4), time(6), time(4), time(4), time(4)};
        c.problem.bytes.assign(c.problem.stages.size(), {0, 0, 0, 0, time(0)});
        c.problem.link = {{time(0), time(0), 3},
                          {time(0), time(0), 7},
                          {time(0), time(0), 7}};
        if (random() % 3 == 0) {
          c.problem.recompute.assign(c.problem.stages.size(),
                                     random() % 2 ? Recompute::Fused
                                                  : Recompute::Early);
          c.schedule = insertRecompute(c.problem, c.schedule);
        }
        ASSERT_EQ(check(c.problem), "");
        Windows windows(c.problem, c.schedule);
        Timing unlimited = simulate(c.problem, c.schedule);
        EXPECT_EQ(windows.simulate(INT32_MAX, false).starts, unlimited.starts);
        int32_t needed = windows.minWindow(), chosen = windows.fastestWindow();
        int64_t before = INT64_MAX;
        int32_t best = 0; // the smallest window with the shortest step, up to k
        for (int32_t k = 1; k <= std::max(needed, chosen) + 2; ++k) {
          Timing timing = windows.simulate(k, true);
          ASSERT_TRUE(timing.complete);
          ASSERT_LE(timing.makespan, before);
          ASSERT_GE(timing.makespan, unlimited.makespan);
          ASSERT_EQ(timing.makespan == unlimited.makespan, k >= chosen);
          ASSERT_EQ(timing.occupied, unlimited.occupied);
          best = timing.makespan < before ? k : best;
          ASSERT_EQ(windows.fastestWindow(k), best);
          before = timing.makespan;
          Timing exact = windows.simulate(k, false);
          ASSERT_EQ(exact.complete, k >= needed);
          if (exact.complete) {
            ASSERT_GE(exact.makespan, timing.makespan);
          }
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Windows, EveryWindow, testing::Range(2, 13),
                         testing::PrintToStringParamName());

} // namespace
} // namespace chimera::schedule
