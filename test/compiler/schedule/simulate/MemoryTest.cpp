//===- MemoryTest.cpp - Bytes computed by hand ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

/// Two stages. Stage 0 has 10 bytes of weights (and 10 of gradients), 5 of
/// optimizer state, a stash of 100 and a boundary of 1000. Stage 1 has 20 bytes
/// of weights, no optimizer state and a stash of 200. No stage reads the
/// boundary of stage 1.
Case sized(bool split = false) {
  Case c = makeCase("1f1b", 2, 2, {1, 2, 1, 1}, split);
  c.problem.bytes = {{10, 5, 100, 100, 1000}, {20, 0, 200, 200, 7777}};
  return c;
}

TEST(Memory, CountsWhatAWorkerAlwaysHolds) {
  Case c = sized();
  EXPECT_EQ(residentBytes(c.problem)[0], 15);
  EXPECT_EQ(residentBytes(c.problem)[1], 20);
  // In Chimera, both workers have both stages.
  c = makeCase("chimera", 2, 2);
  c.problem.bytes = {{10, 5, 100, 100, 1000}, {20, 0, 200, 200, 7777}};
  EXPECT_EQ(residentBytes(c.problem)[0], 35);
  EXPECT_EQ(residentBytes(c.problem)[1], 35);
}

/// Worker 0 runs F0 F1 B0 B1, and worker 1 runs F0 B0 F1 B1.
TEST(Memory, CountsStashesSumsAndBoundaries) {
  Case c = sized();
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.peakBytes, (std::vector<int64_t>{15 + 10 + 2 * 100 + 1000,
                                                    20 + 20 + 200 + 1000}));
  EXPECT_EQ(MemoryPeaks(c.problem).peakOf(c.schedule.workers[0], 15).index, 2);
  EXPECT_EQ(MemoryPeaks(c.problem).peakOf(c.schedule.workers[1], 20).index, 1);
}

TEST(Memory, GoesUpAndDownOverTime) {
  Case c = sized();
  Timing timing = simulate(c.problem, c.schedule);
  std::vector<std::pair<int64_t, int64_t>> samples;
  for (MemorySample sample :
       memoryOverTime(c.problem, c.schedule, timing, 1, 20))
    samples.push_back({sample.time, sample.bytes});
  // The actions of worker 1 with their times: F0 1-2, B0 2-4, F1 4-5, B1 5-7.
  EXPECT_EQ(samples,
            (std::vector<std::pair<int64_t, int64_t>>{
                {0, 20}, {1, 1220}, {2, 1240}, {4, 1240}, {5, 1240}, {7, 40}}));
}

/// A weight gradient sends nothing. After it, the stash that the input gradient
/// leaves is freed. While an input gradient runs, the worker needs the larger
/// of the stash before it and the stash that it leaves.
TEST(Memory, KeepsAWeightStashForTheWeightGradient) {
  for (int64_t kept : {200, 250, 30}) {
    Case c = sized(true);
    c.problem.bytes[1].weightStash = kept;
    Timing timing = simulate(c.problem, c.schedule);
    std::vector<std::pair<int64_t, int64_t>> samples;
    for (MemorySample sample :
         memoryOverTime(c.problem, c.schedule, timing, 1, 20))
      samples.push_back({sample.time, sample.bytes});
    int64_t larger = std::max<int64_t>(kept, 200);
    // The actions of worker 1: F0 1-2, I0 2-3, W0 3-4, F1 4-5, I1 5-6, W1 6-7.
    EXPECT_EQ(samples,
              (std::vector<std::pair<int64_t, int64_t>>{{0, 20},
                                                        {1, 1220},
                                                        {2, 1020 + larger},
                                                        {3, 40 + kept},
                                                        {4, 1240},
                                                        {5, 1040 + larger},
                                                        {6, 40 + kept},
                                                        {7, 40}}));
    EXPECT_EQ(timing.peakBytes[1], 1040 + larger);
  }
}

/// Without a flush, a gradient sum is freed when the weights are updated: after
/// each micro-batch (pipedream) or after each step (pipedream-2bw).
TEST(Memory, HoldsASumUntilItsUpdate) {
  for (bool each : {true, false}) {
    Case c = makeCase(each ? "pipedream" : "pipedream-2bw", 1, 2);
    c.problem.bytes = {{10, 5, 100, 100, 1000}};
    int64_t resident = residentBytes(c.problem)[0];
    std::vector<int64_t> bytes;
    Timing timing = simulate(c.problem, c.schedule);
    for (MemorySample sample :
         memoryOverTime(c.problem, c.schedule, timing, 0, resident))
      bytes.push_back(sample.bytes - resident);
    // The bytes at the actions F0 B0 F1 B1 of two steps, and at the end.
    // `between` is the number of bytes at F1.
    int64_t between = each ? 100 : 110;
    EXPECT_EQ(bytes, (std::vector<int64_t>{100, 110, between, 110, 100, 110,
                                           between, 110, 0}));
  }
}

/// The error names the worker that exceeds its cap by the most bytes, and says
/// how many other workers exceed their caps.
TEST(Memory, NamesWorkersAboveTheirCap) {
  Case c = sized();
  EXPECT_FALSE(capExcess(c.problem, c.schedule));
  c.problem.memoryCaps = {1225, 1240};
  EXPECT_FALSE(capExcess(c.problem, c.schedule));
  c.problem.memoryCaps = {1225, 1239};
  CapExcess excess = *capExcess(c.problem, c.schedule);
  EXPECT_EQ(describe(excess, c.problem, c.schedule),
            "at least 1240 bytes on worker 1 at backward of stage 1, "
            "micro-batch 0");
  c.problem.memoryCaps = {1000, 1239};
  excess = *capExcess(c.problem, c.schedule);
  EXPECT_EQ(describe(excess, c.problem, c.schedule),
            "at least 1225 bytes on worker 0 at backward of stage 0, "
            "micro-batch 0, and 1 other worker above the cap");
}

TEST(Memory, IsNothingWithoutSizes) {
  Case c = makeCase("1f1b", 2, 2);
  EXPECT_EQ(simulate(c.problem, c.schedule).peakBytes,
            (std::vector<int64_t>{0, 0}));
  // If several actions reach the peak, the first one is returned.
  EXPECT_EQ(MemoryPeaks(c.problem).peakOf(c.schedule.workers[0], 0).index, 0);
  EXPECT_EQ(MemoryPeaks(c.problem).peakOf({}, 0).index, -1);
}

} // namespace
} // namespace chimera::schedule
