//===- SimulateTest.cpp - Times computed by hand --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

/// Two stages, one micro-batch, f = 2, b = 3, three to cross:
///
///   P0  0-2 F            13-16 B
///   P1        5-7 F 7-10 B
TEST(Simulate, WaitsForTheLatencyBetweenWorkers) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1});
  c.problem.latency = 3;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_TRUE(timing.complete);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 13}, {5, 7}}));
  EXPECT_EQ(timing.makespan, 16);
  EXPECT_EQ(timing.idle, (std::vector<int64_t>{11, 11}));
  EXPECT_DOUBLE_EQ(timing.bubbleRatio(), 22.0 / 32.0);
}

/// Inside one worker nothing has to cross: stages 0 and 1 of the up pipeline
/// sit beside those of the down pipeline.
TEST(Simulate, HasNoLatencyInsideAWorker) {
  Problem problem;
  problem.workers = 1;
  problem.stages.assign(2, {});
  problem.pipelines = {{false, {0, 0}, {0}}};
  problem.latency = 100;
  Schedule schedule;
  schedule.workers = {{{Kind::Forward, 0, 0, 0},
                       {Kind::Forward, 0, 1, 0},
                       {Kind::Backward, 0, 1, 0},
                       {Kind::Backward, 0, 0, 0}}};
  ASSERT_EQ(check(problem), "");
  ASSERT_EQ(messages(verify(problem, schedule)), "");
  Timing timing = simulate(problem, schedule);
  EXPECT_EQ(timing.makespan, 4);
  EXPECT_EQ(timing.peakActivations, std::vector<int32_t>{2});
}

/// Different stages: the second takes four, so the first's second forward is
/// done long before it is wanted.
///
///   P0  F0 F1 .  .  .  .  .  .  .  B0 .  .  .  B1      f=1 b=1
///   P1  .  F0 =  =  =  F1 =  =  =  ...
TEST(Simulate, UsesTheCostsOfEachStage) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.stages[1] = {4, 4, 1, 1};
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 1, 13, 17}, {1, 5, 9, 13}}));
  EXPECT_EQ(timing.makespan, 18);
}

/// A split backward holds its activations until its weight gradient is done,
/// and hands its input gradient on before that.
TEST(Simulate, SplitsABackward) {
  Case c = makeCase("gpipe", 2, 1, {1, 9, 2, 3}, true);
  Timing timing = simulate(c.problem, c.schedule);
  // P0: F at 0, I at 4 (once stage 1's I is done), W at 6.
  // P1: F at 1, I at 2, W at 4.
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 4, 6}, {1, 2, 4}}));
  EXPECT_EQ(timing.makespan, 9);
  EXPECT_EQ(timing.peakActivations, (std::vector<int32_t>{1, 1}));
}

TEST(Simulate, StopsWhereWorkersWaitForEachOther) {
  Case c = makeCase("gpipe", 2, 2);
  std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_FALSE(timing.complete);
  EXPECT_EQ(timing.starts[0], (std::vector<int64_t>{0, -1, -1, -1}));
  EXPECT_EQ(timing.starts[1], (std::vector<int64_t>{1, -1, -1, -1}));
}

TEST(Simulate, HasNoBubbleWithoutWork) { EXPECT_EQ(Timing().bubbleRatio(), 0); }

} // namespace
} // namespace chimera::schedule
