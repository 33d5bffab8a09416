//===- DeviceOrderTest.cpp - Messages in one order a device ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/DeviceOrder.h"

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

int64_t inDeviceOrder(const Case &c) {
  return makespanInDeviceOrder(c.problem, c.schedule,
                               simulate(c.problem, c.schedule));
}

/// GPipe on two workers, messages of 4, which are not under way together:
///
///   P0  F0 F1 .  .  .  .  .  .  .  .  .  .  .  .  .  B0 .  .  .  B1
///   P1  .  .  .  .  .  F0 .  .  .  F1 B0 B1
TEST(DeviceOrder, OneMessageIsUnderWayAtATime) {
  Case c = makeCase("gpipe", 2, 2);
  c.problem.link.alpha = 4;
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 14);
  EXPECT_EQ(inDeviceOrder(c), 20);
}

/// What occupies a worker takes place before its messages are under way, and
/// where the next action waits for them.
TEST(DeviceOrder, WhatOccupiesAWorkerIsCounted) {
  Case c = makeCase("gpipe", 2, 1);
  c.problem.link = {{4, 0, 1}, {2, 0, 1}, {3, 0, 1}};
  // F0 1, send 2, flight 4, receive 3, F0 1, B0 1, and the same way back, B0 1.
  EXPECT_EQ(simulate(c.problem, c.schedule).makespan, 1 + 9 + 2 + 9 + 1);
  EXPECT_EQ(inDeviceOrder(c), 1 + 9 + 2 + 9 + 1);
}

/// On one worker there are no messages, and between two nothing is held up
/// where each message has arrived before the next one is sent.
TEST(DeviceOrder, CostsNothingWhereMessagesDoNotMeet) {
  EXPECT_EQ(inDeviceOrder(makeCase("1f1b", 1, 5)), 10);
  for (int32_t workers = 2; workers <= 8; ++workers) {
    Case c = makeCase("1f1b", workers, 1);
    c.problem.link.alpha = 3;
    EXPECT_EQ(inDeviceOrder(c), simulate(c.problem, c.schedule).makespan);
  }
}

/// Whatever a worker waits for in its own order, it waits for in this one, too.
/// So where every event happens, none happens sooner.
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
          EXPECT_GE(makespanInDeviceOrder(c.problem, c.schedule, timing),
                    timing.makespan)
              << scheme << " " << workers << " " << microBatches;
        }
}

} // namespace
} // namespace chimera::schedule
