//===- FamiliesTest.cpp - Closed forms of each family ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closed forms of every family of schedules, for many sizes. D is the number of
// workers, and N is the number of micro-batches. f and b are the times of a
// forward and a backward.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

std::string nameOfSizes(int32_t d, int32_t n) {
  return "D=" + std::to_string(d) + " N=" + std::to_string(n);
}

/// As in Li and Hoefler's drawing (N = D), the table has 3D-2 slots. Each
/// worker is idle in D-2 of them.
TEST(Chimera, FillsThreeDMinusTwoSlots) {
  for (int32_t d = 2; d <= 32; d += 2) {
    SCOPED_TRACE(d);
    Case c = makeCase("chimera", d, d);
    ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
    ASSERT_TRUE(c.schedule.hasSlots());
    Timing slots = slotTiming(c.problem, c.schedule);
    EXPECT_EQ(slots.makespan, 3 * d - 2);
    EXPECT_EQ(slots.idle, std::vector<int64_t>(d, d - 2));
  }
}

/// Of the D-2 idle slots of a worker, D/2-1 are in the first half of the table.
/// In that half, no backward can delay a worker.
TEST(Chimera, SpreadsIdleSlotsOverBothHalves) {
  for (int32_t d = 2; d <= 32; d += 2) {
    SCOPED_TRACE(d);
    Case c = makeCase("chimera", d, d);
    int64_t half = (3 * d - 2) / 2;
    for (const std::vector<int64_t> &row : c.schedule.slots)
      EXPECT_EQ(std::count_if(row.begin(), row.end(),
                              [&](int64_t slot) { return slot < half; }),
                d);
  }
}

TEST(Chimera, HoldsHalfToAllMicroBatches) {
  for (int32_t d = 2; d <= 32; d += 2) {
    SCOPED_TRACE(d);
    Case c = makeCase("chimera", d, d);
    Timing timing = slotTiming(c.problem, c.schedule);
    auto [least, most] = std::minmax_element(timing.peakActivations.begin(),
                                             timing.peakActivations.end());
    EXPECT_EQ(*least, d / 2 + 1);
    EXPECT_EQ(*most, d);
  }
}

/// N = D, and actions start as soon as possible. If b >= f, the critical path
/// has D forwards and 2D-2 backwards. So at b = 2f the step takes 5D-4 times f.
TEST(Chimera, TakesDForwardsAndTwoDMinusTwoBackwards) {
  for (int32_t d = 2; d <= 32; d += 2)
    for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 10}}) {
      SCOPED_TRACE(nameOfSizes(d, d) + " b=" + std::to_string(b));
      Case c = makeCase("chimera", d, d, {f, b, 1, 1});
      Timing timing = simulate(c.problem, c.schedule);
      EXPECT_TRUE(timing.complete);
      EXPECT_EQ(timing.makespan, d * f + (2 * d - 2) * b);
      if (f == 1 && b == 2) {
        EXPECT_EQ(timing.makespan, 5 * d - 4);
      }
    }
}

/// Worker w has stage w of the down pipeline and stage D-1-w of the up
/// pipeline. Each pipeline has half of the micro-batches.
TEST(Chimera, LaysTwoPipelinesOverTheWorkers) {
  Case c = makeCase("chimera", 6, 6);
  ASSERT_EQ(c.problem.pipelines.size(), 2u);
  EXPECT_FALSE(c.problem.pipelines[0].up);
  EXPECT_TRUE(c.problem.pipelines[1].up);
  EXPECT_EQ(c.problem.pipelines[0].workers,
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(c.problem.pipelines[1].workers,
            (std::vector<int32_t>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(c.problem.pipelines[0].microBatches,
            (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(c.problem.pipelines[1].microBatches,
            (std::vector<int32_t>{3, 4, 5}));
}

TEST(Chimera, SaysWhichSizesItCanDo) {
  const Scheme *scheme = findScheme("chimera");
  ASSERT_NE(scheme, nullptr);
  for (int32_t d = 1; d <= 33; ++d)
    for (int32_t count = -1; count <= 34; ++count)
      for (int32_t n : {1, 2, 5, 100})
        EXPECT_EQ(canPlan(*scheme, d, n, chimeraWith(count)),
                  d >= 2 && (count == 2 || (d % 2 == 0 && count >= 2 &&
                                            count % 2 == 0 && d % count == 0)))
            << nameOfSizes(d, n) << " " << count;
  EXPECT_EQ(planError(*scheme, 1, 3), "expected at least 2 workers for two "
                                      "directions, got 1: use gpipe or 1f1b");
  EXPECT_EQ(planError(*scheme, 5, 3, chimeraWith(4)),
            "expected 2 pipelines for an odd number of workers (5), got 4");
  EXPECT_EQ(planError(*scheme, 2, 3, chimeraWith(4)),
            "expected 2 pipelines for 2 workers, got 4");
  EXPECT_EQ(planError(*scheme, 6, 3, chimeraWith(4)),
            "expected 2 or 6 pipelines for 6 workers, got 4");
  EXPECT_EQ(planError(*scheme, 8, 3, chimeraWith(3)),
            "expected 2, 4 or 8 pipelines for 8 workers, got 3");
}

TEST(Chimera, RecommendsDataParallelismIfItIsSimpler) {
  const Scheme *scheme = findScheme("chimera");
  for (int32_t d = 2; d <= 16; ++d)
    for (int32_t count = 2; count <= d; count += 2)
      if (canPlan(*scheme, d, d, chimeraWith(count))) {
        EXPECT_EQ(
            noteOf(makeCase("chimera", d, d, {}, false, chimeraWith(count)))
                .empty(),
            count != d)
            << d << " " << count;
      }
  EXPECT_EQ(noteOf(makeCase("chimera", 2, 2)),
            "with as many pipelines as stages every worker holds the whole "
            "model: plain data parallelism does the same without messages");
  // If there are fewer micro-batches than pipelines, some pipelines get none.
  // Only the others are compared with the number of stages.
  EXPECT_EQ(noteOf(makeCase("chimera", 2, 1)), "");
  EXPECT_EQ(noteOf(makeCase("chimera", 8, 7, {}, false, chimeraWith(8))), "");
}

class Linear : public testing::TestWithParam<const char *> {};

/// During the ramp and the drain, every worker is idle for D-1 forwards and
/// backwards. It is never idle otherwise, for any N.
TEST_P(Linear, IdlesForTheRampOnly) {
  for (int32_t d : {1, 2, 3, 4, 7, 16})
    for (int32_t n : {1, 2, 3, 5, 8, 16, 33})
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {3, 5}}) {
        SCOPED_TRACE(nameOfSizes(d, n));
        Case c = makeCase(GetParam(), d, n, {f, b, 1, 1});
        ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
        Timing timing = simulate(c.problem, c.schedule);
        EXPECT_EQ(timing.makespan, (n + d - 1) * (f + b));
        EXPECT_EQ(timing.idle, std::vector<int64_t>(d, (d - 1) * (f + b)));
        EXPECT_NEAR(timing.bubbleRatio(), double(d - 1) / (n + d - 1), 1e-12);
      }
}

TEST_P(Linear, LaysOnePipelineDownTheWorkers) {
  Case c = makeCase(GetParam(), 3, 5);
  ASSERT_EQ(c.problem.pipelines.size(), 1u);
  EXPECT_FALSE(c.problem.pipelines[0].up);
  EXPECT_EQ(c.problem.pipelines[0].workers, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(c.problem.pipelines[0].microBatches,
            (std::vector<int32_t>{0, 1, 2, 3, 4}));
}

INSTANTIATE_TEST_SUITE_P(Families, Linear, testing::Values("gpipe", "1f1b"),
                         [](const auto &info) {
                           return info.param[0] == 'g'
                                      ? "GPipe"
                                      : "OneForwardOneBackward";
                         });

TEST(GPipe, HoldsEveryMicroBatch) {
  for (int32_t d : {1, 2, 5, 8})
    for (int32_t n : {1, 3, 8, 20}) {
      Case c = makeCase("gpipe", d, n);
      EXPECT_EQ(simulate(c.problem, c.schedule).peakActivations,
                std::vector<int32_t>(d, n))
          << nameOfSizes(d, n);
    }
}

TEST(OneForwardOneBackward, HoldsAsManyMicroBatchesAsStagesAreLeft) {
  for (int32_t d : {1, 2, 5, 8})
    for (int32_t n : {1, 3, 8, 20}) {
      Case c = makeCase("1f1b", d, n);
      std::vector<int32_t> peaks;
      for (int32_t rank = 0; rank < d; ++rank)
        peaks.push_back(std::min(n, d - rank));
      EXPECT_EQ(simulate(c.problem, c.schedule).peakActivations, peaks)
          << nameOfSizes(d, n);
    }
}

} // namespace
} // namespace chimera::schedule
