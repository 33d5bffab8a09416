//===- DeviceOperationsTest.cpp - Messages in one order on each device ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/CoreGroups.h"

#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <random>

namespace chimera::schedule {
namespace {

int64_t inDeviceOrder(const Case &c) {
  return simulate(c.problem, c.schedule, {.inDeviceOrder = true}).makespan;
}

/// GPipe on two workers. A message takes 4, and only one message is under way
/// at a time:
///
///   P0  F0 F1 .  .  .  .  .  .  .  .  .  .  .  .  .  B0 .  .  .  B1
///   P1  .  .  .  .  .  F0 .  .  .  F1 B0 B1
TEST(DeviceOrder, OneMessageIsUnderWayAtATime) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.link.alpha = 4;
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 14);
  EXPECT_EQ(inDeviceOrder(c), 20);
}

/// A message occupies its sender before it travels. It occupies its receiver
/// when the receiver's next action waits for it. These times are part of the
/// step.
TEST(DeviceOrder, WhatOccupiesAWorkerIsCounted) {
  Case c = makeCase("gpipe", 2, 1);
  c.problem.link = {{4, 0, 1}, {2, 0, 1}, {3, 0, 1}};
  // F0 1, send 2, flight 4, receive 3, F0 1, B0 1, and the same way back, B0 1.
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 1 + 9 + 2 + 9 + 1);
  EXPECT_EQ(inDeviceOrder(c), 1 + 9 + 2 + 9 + 1);
}

/// A single worker has no messages. Between workers, no message is delayed if
/// each one has arrived before the next one is sent.
TEST(DeviceOrder, CostsNothingIfMessagesDoNotOverlap) {
  EXPECT_EQ(inDeviceOrder(makeCase("1f1b", 1, 5)), 10);
  for (int32_t workers = 2; workers <= 8; ++workers) {
    Case c = makeCase("1f1b", workers, 1);
    c.problem.link.alpha = 3;
    EXPECT_EQ(inDeviceOrder(c), simulate(c.problem, c.schedule).makespan);
  }
}

/// In device order, a worker waits for everything for which it waits in
/// `simulate`, and possibly for more. So if the run completes, no event is
/// earlier than in `simulate`.
TEST(DeviceOrder, IsNeverFaster) {
  for (const char *scheme : {"chimera", "gpipe", "1f1b", "gems", "pipedream"})
    for (int32_t workers : {2, 3, 4, 6, 8})
      for (int32_t microBatches : {workers, workers + 1, 3 * workers})
        for (int64_t latency : {0, 1, 5}) {
          Case c = makeCase(scheme, workers, microBatches);
          c.problem.link.alpha = latency;
          c.problem.link.send.alpha = latency % 3;
          c.problem.link.receive.alpha = latency * 2;
          Timing timing = simulate(c.problem, c.schedule);
          ASSERT_TRUE(timing.complete);
          EXPECT_GE(inDeviceOrder(c), timing.makespan)
              << scheme << " " << workers << " " << microBatches;
        }
}

/// The case that Clock.h draws. Its messages never wait for each other,
/// so device order does not change the times.
TEST(DeviceOrder, TakesTheTimesOfSharedCores) {
  Case c = makeCase("gpipe", 2, 2, {2, 4, 1, 1});
  c.problem.node = {.devices = 2, .cores = 1};
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 24);
  EXPECT_EQ(inDeviceOrder(c), 24);
}

/// An update after an action delays the next action, as in simulate().
TEST(DeviceOrder, CountsUpdatesAmongActions) {
  Case c = makeCase("pipedream", 1, 2, {1, 2});
  c.problem.stages[0].update = 7;
  EXPECT_EQ(inDeviceOrder(c), simulate(c.problem, c.schedule).makespan);
}

/// The receive of F1 on P1 waits for the receive of F0, which waits until F0
/// has been sent. So F0 determines the end of all.
TEST(DeviceOrder, HasACriticalPath) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.link.alpha = 4;
  const Timing timing =
      simulate(c.problem, c.schedule, {.inDeviceOrder = true});
  EXPECT_EQ(timing.criticalPath,
            (std::vector<ActionRef>{{0, 0}, {1, 1}, {1, 2}, {0, 3}}));
}

/// Expects that the critical path leads from time 0 to the makespan, and that
/// each of its actions starts after the previous one has ended.
void expectPath(const Schedule &schedule, const Timing &timing) {
  ASSERT_FALSE(timing.criticalPath.empty());
  int64_t time = 0;
  for (const auto &[worker, index] : timing.criticalPath) {
    ASSERT_GE(timing.starts[worker][index], time);
    time = timing.ends[worker][index];
  }
  EXPECT_EQ(time, timing.makespan);
  const auto [worker, index] = timing.criticalPath.front();
  const Action &first = schedule.workers[worker][index];
  EXPECT_EQ(index, 0);
  EXPECT_EQ(first.kind, Kind::Forward);
  EXPECT_EQ(timing.starts[worker][index], 0);
}

/// Random cases with shared cores, split backwards, updates and messages. A
/// worker that waits for a message leaves its cores to the others. So messages
/// in device order may even make a schedule a little shorter.
TEST(DeviceOrder, NeverBeatsABoundIfWorkersShareCores) {
  std::mt19937 random(3);
  auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % (most - least + 1));
  };
  int32_t shared = 0, later = 0;
  for (const Scheme &scheme : schemes())
    for (int32_t round = 0; round < 40; ++round) {
      const auto d = static_cast<int32_t>(draw(1, 9));
      const auto n = static_cast<int32_t>(draw(1, 3 * d));
      const std::vector<Choice> all = choices(scheme, d);
      if (all.empty())
        continue;
      const Choice &choice = all[draw(0, std::ssize(all) - 1)];
      if (!canPlan(scheme, d, n, choice))
        continue;
      Case c = makeCase(scheme.name, d, n, {}, draw(0, 1) == 1, choice);
      for (StageCost &cost : c.problem.stages)
        cost = {draw(8, 20), draw(8, 40), draw(8, 20),
                draw(8, 20), draw(8, 20), draw(0, 9)};
      c.problem.bytes.assign(c.problem.stages.size(), {8, 0, 1, 1, 8});
      c.problem.link = {{draw(0, 9), draw(0, 2), 4},
                        {draw(0, 3), draw(0, 2), 4},
                        {draw(0, 9), draw(0, 2), 4}};
      c.problem.width = static_cast<int32_t>(draw(1, 3));
      c.problem.allReduceMessage = {draw(0, 5), 0, 1};
      const auto devices = static_cast<int32_t>(draw(1, d * c.problem.width));
      c.problem.node = {.devices = devices,
                        .links = c.problem,
                        .cores = static_cast<int32_t>(draw(1, devices))};
      shared += sharesCores(c.problem);
      Timing timing = simulate(c.problem, c.schedule);
      ASSERT_TRUE(timing.complete);
      const int64_t inOrder = inDeviceOrder(c);
      SCOPED_TRACE(nameOf(scheme, d, n, choice));
      for (const Bound &bound : bounds(c.problem))
        if (bound.holdsForSimulator) {
          EXPECT_GE(inOrder, bound.time) << bound.name;
        }
      if (!sharesCores(c.problem)) {
        EXPECT_GE(inOrder, timing.makespan);
      }
      for (bool inDeviceOrder : {false, true})
        expectPath(c.schedule, simulate(c.problem, c.schedule,
                                        {.inDeviceOrder = inDeviceOrder}));
      later += inOrder > timing.makespan;
    }
  EXPECT_GT(shared, 100);
  EXPECT_GT(later, 100);
}

} // namespace
} // namespace chimera::schedule
