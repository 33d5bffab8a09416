//===- SimulateTest.cpp - Times computed by hand --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/model/Recompute.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <random>

namespace chimera::schedule {
namespace {

/// Two stages, one micro-batch. A forward takes 2, a backward 3 and a message
/// 3:
///
///   P0  0-2 F            13-16 B
///   P1        5-7 F 7-10 B
TEST(Simulate, WaitsForTheLatencyBetweenWorkers) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1});
  c.problem.link.alpha = 3;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_TRUE(timing.complete);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 13}, {5, 7}}));
  EXPECT_EQ(timing.makespan, 16);
  EXPECT_EQ(timing.idle, (std::vector<int64_t>{11, 11}));
  EXPECT_DOUBLE_EQ(timing.bubbleRatio(), 22.0 / 32.0);
}

/// The case of WaitsForTheLatencyBetweenWorkers. Now a message also occupies
/// its sender for 1 after the action, and its receiver for 2 before the next
/// action:
///
///   P0  0-2 F 2-3 send                                17-19 receive 19-22 B
///   P1           6-8 receive 8-10 F 10-13 B 13-14 send
TEST(Simulate, OccupiesWorkersWithMessages) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1});
  c.problem.link.alpha = 3;
  c.problem.link.send.alpha = 1;
  c.problem.link.receive.alpha = 2;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 19}, {8, 10}}));
  EXPECT_EQ(timing.makespan, 22);
  EXPECT_EQ(timing.busy, (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(timing.idle, (std::vector<int64_t>{17, 17}));
  EXPECT_EQ(timing.spans, (std::vector<int64_t>{22, 8}));
  EXPECT_EQ(timing.criticalPath,
            (std::vector<ActionRef>{{0, 0}, {1, 0}, {1, 1}, {0, 1}}));
}

/// P0 and P1 are on one node. A message between them takes 1, and a message to
/// or from P2 takes 4:
///
///   P0  F F .                           . B B
///   P1      . F F . . . .       . . . . B B .
///   P2            . . . . F F B B . . . .
TEST(Simulate, SendsOverTheLinkOfBothWorkers) {
  Case c = makeCase("gpipe", 3, 1, {2, 2, 1, 1});
  c.problem.link.alpha = 4;
  c.problem.node = {2, {{{1, 0, 1}}}};
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 20}, {3, 17}, {9, 11}}));
}

/// A message may arrive long before it is needed: here the second one arrives
/// at P1 at time 2. Even then it occupies its receiver (`-`) directly before
/// the action that uses it:
///
///   P0  F0 F1 .  .  .  .  .  .  .  .  .  -  B  -  B
///   P1  .  -  F0 =  =  -  F1 =  =  B  =  B  =
TEST(Simulate, ReceivesBeforeTheActionThatNeedsIt) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.stages[1] = {3, 2, 1, 1};
  c.problem.link.receive.alpha = 1;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 1, 12, 14}, {2, 6, 9, 11}}));
  EXPECT_EQ(timing.makespan, 15);
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(
      timing.criticalPath,
      (std::vector<ActionRef>{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {0, 2}, {0, 3}}));
}

/// The next action of a worker starts only after a send has ended, even if no
/// other worker waits for the message.
TEST(Simulate, SendsAfterTheActionThatProducesTheValue) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.link.send.alpha = 2;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 3, 10, 13}, {3, 6, 7, 10}}));
  EXPECT_EQ(timing.makespan, 14);
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(timing.spans, (std::vector<int64_t>{14, 10}));
}

/// Messages occupy workers for a time that depends on their bytes: 4 bytes
/// cross the first boundary, and 1 byte crosses the second.
TEST(Simulate, OccupiesWorkersForEveryByte) {
  Case c = makeCase("gpipe", 3, 1);
  c.problem.bytes = {{0, 0, 0, 0, 4}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 9}};
  c.problem.link.send = {0, 1, 2};
  c.problem.link.receive = {1, 1, 1};
  Timing timing = simulate(c.problem, c.schedule);
  // F of stage 0 at 0-1, send 2, receive 5; F of stage 1 at 8-9, send 1
  // (rounded up), receive 2; F of stage 2 at 12-13.
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 25}, {8, 17}, {12, 13}}));
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{7, 10, 3}));
}

/// A fused recompute waits for the gradient and receives it. So its backward
/// receives nothing.
TEST(Simulate, ReceivesOnceForAFusedRecompute) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1, 2});
  c.problem.recompute.assign(2, Recompute::Fused);
  c.schedule = insertRecompute(c.problem, c.schedule);
  c.problem.link.receive.alpha = 1;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 11, 13}, {3, 5, 7}}));
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{1, 1}));
}

/// There are no messages inside one worker: it has stages 0 and 1 of both the
/// down and the up pipeline.
TEST(Simulate, HasNoLatencyInsideAWorker) {
  Problem problem;
  problem.workers = 1;
  problem.stages.assign(2, {});
  problem.pipelines = {{false, {0, 0}, {0}}};
  problem.link.alpha = 100;
  Schedule schedule;
  schedule.workers = {{{Kind::Forward, 0, 0, 0},
                       {Kind::Forward, 0, 1, 0},
                       {Kind::Backward, 0, 1, 0},
                       {Kind::Backward, 0, 0, 0}}};
  ASSERT_EQ(check(problem), "");
  ASSERT_EQ(violationText(verify(problem, schedule)), "");
  Timing timing = simulate(problem, schedule);
  EXPECT_EQ(timing.makespan, 4);
  EXPECT_EQ(timing.peakActivations, std::vector<int32_t>{2});
}

/// Unequal stages: the actions of the second stage take 4. So the first stage's
/// second forward ends long before the second stage needs its result.
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

/// If a backward is split, the worker holds the activations until the weight
/// gradient ends. It sends the input gradient before the weight gradient
/// starts.
TEST(Simulate, SplitsABackward) {
  Case c = makeCase("gpipe", 2, 1, {1, 9, 2, 3}, true);
  Timing timing = simulate(c.problem, c.schedule);
  // P0: F at 0, I at 4 (after the I of stage 1), W at 6.
  // P1: F at 1, I at 2, W at 4.
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 4, 6}, {1, 2, 4}}));
  EXPECT_EQ(timing.makespan, 9);
  EXPECT_EQ(timing.peakActivations, (std::vector<int32_t>{1, 1}));
}

TEST(Simulate, StopsIfWorkersWaitForEachOther) {
  Case c = makeCase("gpipe", 2, 2);
  std::swap(c.schedule.workers[0][1], c.schedule.workers[0][2]);
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_FALSE(timing.complete);
  EXPECT_EQ(timing.starts[0], (std::vector<int64_t>{0, -1, -1, -1}));
  EXPECT_EQ(timing.starts[1], (std::vector<int64_t>{1, -1, -1, -1}));
}

/// A message has the bytes of the boundary that it crosses, in both directions:
/// 4 bytes after stage 0, and 1 byte after stage 1. A message takes a time of 1
/// plus 1 per byte.
///
///   P0  F0 at 0                                  B0 at 19
///   P1       F0 at 6           B0 at 13
///   P2            F0 at 9  B0 at 10
TEST(Simulate, ChargesTheBoundaryOfEachEdge) {
  Case c = makeCase("gpipe", 3, 1);
  c.problem.bytes = {{0, 0, 0, 0, 4}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 9}};
  c.problem.link = {1, 1, 1};
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts,
            (std::vector<std::vector<int64_t>>{{0, 19}, {6, 13}, {9, 10}}));
}

/// A V placement: stages 0 and 3 are on worker 0, and stages 1 and 2 on worker
/// 1. So only the boundaries between stages 0 and 1 and between stages 2 and 3
/// have messages.
TEST(Simulate, PassesBetweenNeighbourStagesWithoutAMessage) {
  Problem problem;
  problem.workers = 2;
  problem.stages.assign(4, {});
  problem.pipelines = {{false, {0, 1, 1, 0}, {0}}};
  problem.link.alpha = 10;
  Schedule schedule;
  schedule.workers.resize(2);
  for (Kind kind : {Kind::Forward, Kind::Backward})
    for (int32_t i = 0; i < 4; ++i) {
      int32_t s = kind == Kind::Forward ? i : 3 - i;
      schedule.workers[s % 3 == 0 ? 0 : 1].push_back({kind, 0, s, 0});
    }
  ASSERT_EQ(violationText(verify(problem, schedule)), "");
  Timing timing = simulate(problem, schedule);
  EXPECT_EQ(timing.starts, (std::vector<std::vector<int64_t>>{
                               {0, 23, 24, 47}, {11, 12, 35, 36}}));
}

/// The flush bubble is the makespan minus the load. The internal bubble is idle
/// time between the first and the last action of a worker. In 1F1B they are
/// equal, because the first worker starts first and ends last. In this drawing,
/// the last worker has the most work, and no gap. If it also starts late in the
/// next step, its late start costs nothing:
///
///   P0  F .  .  .  I  =  W  =  =  .  .  .  .  .
///   P1  .  F I  =  W  =  =  =  =  =  =  =  =  =
TEST(Simulate, DistinguishesFlushAndInternalBubble) {
  Case c = makeCase("1f1b", 4, 8, {1, 2, 1, 1});
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.maxLoad(), 24);
  EXPECT_EQ(timing.flushBubble(), 9);
  EXPECT_EQ(timing.internalBubble(), 9);
  EXPECT_EQ(timing.busy, std::vector<int64_t>(4, 24));
  EXPECT_EQ(timing.spans, (std::vector<int64_t>{33, 30, 27, 24}));
  c = makeCase("gpipe", 2, 1, {1, 1, 2, 3}, true);
  c.problem.stages[1].weightGradient = 10;
  timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.makespan, 14);
  EXPECT_EQ(timing.busy, (std::vector<int64_t>{6, 13}));
  EXPECT_EQ(timing.spans, (std::vector<int64_t>{9, 13}));
  EXPECT_EQ(timing.flushBubble(), 1);
  EXPECT_EQ(timing.internalBubble(), 0);
}

/// The critical path goes from time 0 to the end without a gap: each action
/// starts when the previous one ends. It has D forwards and 2D-2 backwards (C_f
/// and C_b in Chimera's performance model).
TEST(Simulate, FollowsTheCriticalPath) {
  for (int32_t d = 2; d <= 16; d += 2) {
    SCOPED_TRACE(d);
    Case c = makeCase("chimera", d, d, {7, 11, 1, 1});
    Timing timing = simulate(c.problem, c.schedule);
    int64_t time = 0;
    int count[2] = {0, 0};
    for (const ActionRef &ref : timing.criticalPath) {
      ASSERT_EQ(timing.starts[ref.worker][ref.index], time);
      const Action &action = c.schedule.workers[ref.worker][ref.index];
      time += c.problem.cost(action.kind, action.stage);
      ++count[static_cast<int>(action.kind)];
    }
    EXPECT_EQ(time, timing.makespan);
    EXPECT_EQ(count[0], d);
    EXPECT_EQ(count[1], 2 * d - 2);
  }
}

TEST(Simulate, LeavesTheTimeOfMessagesOnTheCriticalPath) {
  Case c = makeCase("gpipe", 2, 1, {2, 3, 1, 1});
  c.problem.link.alpha = 3;
  EXPECT_EQ(simulate(c.problem, c.schedule).criticalPath,
            (std::vector<ActionRef>{{0, 0}, {1, 0}, {1, 1}, {0, 1}}));
}

/// Workers that begin later start their actions later. If each worker begins
/// before its first action must start, all actions are late by the same time.
TEST(Simulate, BeginsWhenEachWorkerBegins) {
  std::mt19937 random(3);
  auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  int delayed = 0;
  for (const Scheme &scheme : schemes())
    for (int32_t d : {1, 2, 4, 6})
      for (const Choice &choice : choices(scheme, d)) {
        const int32_t n = 2 * d;
        if (!canPlan(scheme, d, n, choice))
          continue;
        Case c = makeCase(scheme.name, d, n, {4, 6, 3, 3, 4}, draw(1), choice);
        c.problem.link = {{draw(3), 0, 1}, {draw(1), 0, 1}, {draw(1), 0, 1}};
        SCOPED_TRACE(nameOf(scheme, d, n, choice));
        const Timing first = simulate(c.problem, c.schedule);
        const std::vector<int64_t> same(d, 7);
        const Timing late = simulate(c.problem, c.schedule, {.begins = same});
        std::vector<int64_t> begins;
        for (int32_t w = 0; w < d; ++w)
          begins.push_back(7 + draw(20));
        const Timing later =
            simulate(c.problem, c.schedule, {.begins = begins});
        for (int32_t w = 0; w < d; ++w) {
          EXPECT_GE(later.starts[w].front(), begins[w]);
          for (size_t i = 0; i < first.ends[w].size(); ++i) {
            ASSERT_EQ(late.ends[w][i], first.ends[w][i] + 7);
            ASSERT_GE(later.ends[w][i], late.ends[w][i]);
            delayed += later.ends[w][i] > late.ends[w][i];
          }
        }
        EXPECT_EQ(late.spans, first.spans);
        EXPECT_TRUE(late.criticalPath.empty());
      }
  EXPECT_GT(delayed, 1000);
}

TEST(Simulate, HasNoBubbleWithoutWork) { EXPECT_EQ(Timing().bubbleRatio(), 0); }

} // namespace
} // namespace chimera::schedule
