//===- RecomputeTest.cpp - Forwards that run again ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"

#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/timeline/Timeline.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

/// Recomputes all stages: early or fused, as `how` says. A recompute takes as
/// long as a forward.
Case withRecompute(Case c, Recompute how) {
  for (StageCost &cost : c.problem.stages)
    cost.recompute = cost.forward;
  c.problem.recompute.assign(c.problem.stages.size(), how);
  c.schedule = insertRecompute(c.problem, c.schedule);
  return c;
}

/// The case with an early recompute before every backward. No recompute is left
/// out, not even directly after the forward of its micro-batch.
Case withNoneLeftOut(Case c) {
  Case fused = withRecompute(c, Recompute::Fused);
  fused.problem.recompute.assign(c.problem.stages.size(), Recompute::Early);
  return fused;
}

int64_t makespan(const Case &c) {
  EXPECT_EQ(check(c.problem), "");
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_TRUE(timing.complete);
  EXPECT_GE(timing.makespan, bestBound(bounds(c.problem)).time);
  return timing.makespan;
}

/// Step times of chimera, if forwards and recomputes take 1 and backwards 2.
/// The columns are fused recomputes, early ones, and early ones without those
/// that can be left out.
TEST(Recompute, TakesTheTimesOfTheReference) {
  for (auto [d, fused, early, dropped] :
       {std::tuple{4, 22, 20, 19}, {8, 50, 44, 43}}) {
    Case c = makeCase("chimera", d, d, {1, 2, 1, 1});
    EXPECT_EQ(makespan(withRecompute(c, Recompute::Fused)), fused);
    EXPECT_EQ(makespan(withNoneLeftOut(c)), early);
    EXPECT_EQ(makespan(withRecompute(c, Recompute::Early)), dropped);
  }
}

/// Step times of 1F1B in Mario (PPoPP'25), if forwards and recomputes take 1
/// and backwards 2. The columns are no recomputes, fused ones, early ones, and
/// early ones without those that can be left out.
TEST(Recompute, TakesTheTimesOfMario) {
  for (auto [d, n, none, fused, early, dropped] :
       {std::tuple{4, 8, 33, 44, 41, 39}, {8, 16, 69, 92, 85, 83}}) {
    Case c = makeCase("1f1b", d, n, {1, 2, 1, 1});
    EXPECT_EQ(makespan(c), none);
    EXPECT_EQ(makespan(withRecompute(c, Recompute::Fused)), fused);
    EXPECT_EQ(makespan(withNoneLeftOut(c)), early);
    EXPECT_EQ(makespan(withRecompute(c, Recompute::Early)), dropped);
  }
}

/// Chimera's idle time in percent, if a backward with its fused recompute takes
/// three forwards and N = KD: with direct concatenation and, for K >= 2, with
/// doubling.
TEST(Recompute, LeavesTheIdleSharesOfTheReference) {
  struct Row {
    int32_t d, k;
    double direct, doubling;
  };
  for (auto [d, k, direct, doubling] : {Row{4, 1, 27.3, -1},
                                        {4, 2, 23.8, 11.1},
                                        {4, 4, 22.0, 8.6},
                                        {4, 8, 21.0, 7.2},
                                        {8, 1, 36.0, -1},
                                        {8, 2, 31.9, 15.8},
                                        {8, 4, 29.7, 12.3},
                                        {16, 1, 39.6, -1},
                                        {16, 2, 35.4, 17.9},
                                        {16, 4, 33.0, 14.1},
                                        {32, 1, 41.3, -1}}) {
    SCOPED_TRACE(std::to_string(d) + " " + std::to_string(k));
    for (double expected : {direct, doubling}) {
      if (expected < 0)
        continue;
      Case c = withRecompute(
          makeCase("chimera", d, k * d, {1, 2, 1, 1}, false,
                   chimeraWith(2, expected == direct
                                      ? Concatenation::Direct
                                      : Concatenation::FineTunedDoubling)),
          Recompute::Fused);
      Timing timing = simulate(c.problem, c.schedule);
      EXPECT_NEAR(100 * timing.bubbleRatio(), expected, 0.05);
      EXPECT_EQ(timing.busy, std::vector<int64_t>(d, 4 * k * d));
    }
  }
}

/// With early recomputation, there is no recompute directly after the forward
/// of the same micro-batch.
TEST(Recompute, IsOmittedDirectlyAfterItsForward) {
  Case c = withRecompute(makeCase("1f1b", 2, 2), Recompute::Early);
  EXPECT_EQ(c.schedule.workers[1],
            (std::vector<Action>{{Kind::Forward, 0, 1, 0},
                                 {Kind::Backward, 0, 1, 0},
                                 {Kind::Forward, 0, 1, 1},
                                 {Kind::Backward, 0, 1, 1}}));
  EXPECT_EQ(c.schedule.workers[0],
            (std::vector<Action>{{Kind::Forward, 0, 0, 0},
                                 {Kind::Forward, 0, 0, 1},
                                 {Kind::Recompute, 0, 0, 0},
                                 {Kind::Backward, 0, 0, 0},
                                 {Kind::Recompute, 0, 0, 1},
                                 {Kind::Backward, 0, 0, 1}}));
  // After a forward over two micro-batches, the recompute of either of the two
  // may be left out. After a forward whose backward is cut into two halves, the
  // recompute of the first half may be left out.
  Problem pairs = makeCase("chimera", 2, 4, {1, 2, 1, 1}, false,
                           chimeraWith(2, Concatenation::Doubling))
                      .problem;
  pairs.recompute.assign(2, Recompute::Early);
  Schedule order;
  order.workers = {{{Kind::Forward, 0, 0, 0, 2},
                    {Kind::Backward, 0, 0, 1},
                    {Kind::Backward, 0, 0, 0}}};
  EXPECT_EQ(insertRecompute(pairs, order).workers[0],
            (std::vector<Action>{{Kind::Forward, 0, 0, 0, 2},
                                 {Kind::Backward, 0, 0, 1},
                                 {Kind::Recompute, 0, 0, 0},
                                 {Kind::Backward, 0, 0, 0}}));
  order.workers = {{{Kind::Forward, 0, 0, 0},
                    {Kind::Backward, 0, 0, 0, 1, 0, 2},
                    {Kind::Backward, 0, 0, 0, 1, 1, 2}}};
  EXPECT_EQ(insertRecompute(pairs, order).workers[0],
            (std::vector<Action>{{Kind::Forward, 0, 0, 0},
                                 {Kind::Backward, 0, 0, 0, 1, 0, 2},
                                 {Kind::Recompute, 0, 0, 0, 1, 1, 2},
                                 {Kind::Backward, 0, 0, 0, 1, 1, 2}}));
}

/// Only stage 0 is recomputed. A recompute comes before the input gradient.
TEST(Recompute, ComesBeforeTheInputGradient) {
  Case c = makeCase("gpipe", 2, 1, {}, true);
  c.problem.recompute = {Recompute::Fused, Recompute::None};
  c.schedule = insertRecompute(c.problem, c.schedule);
  EXPECT_EQ(c.schedule.workers[0],
            (std::vector<Action>{{Kind::Forward, 0, 0, 0},
                                 {Kind::Recompute, 0, 0, 0},
                                 {Kind::InputGradient, 0, 0, 0},
                                 {Kind::WeightGradient, 0, 0, 0}}));
  EXPECT_EQ(c.schedule.workers[1].size(), 3u);
  EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
}

/// The input of stage 1 has 1000 bytes, and its stash 200. The worker holds the
/// input until the recompute ends, and the stash from the start of the
/// recompute. The input of stage 0 takes no memory here.
TEST(Recompute, HoldsOnlyInputsUntilItRuns) {
  Case c = withRecompute(makeCase("gpipe", 2, 2), Recompute::Fused);
  c.problem.bytes = {{10, 5, 100, 100, 1000}, {20, 0, 200, 200, 7777}};
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.peakActivations, (std::vector<int32_t>{1, 1}));
  // A forward of stage 0 sends 1000 bytes. A backward reads a gradient of 1000
  // bytes and a stash of 100.
  EXPECT_EQ(timing.peakBytes[0], 25 + 1000 + 100);
  std::vector<int64_t> bytes;
  for (MemorySample sample :
       memoryOverTime(c.problem, c.schedule, timing, 1, 20))
    bytes.push_back(sample.bytes);
  // The actions with their start times: F0 1, F1 2, R0 3, B0 4, R1 5, B1 6.
  // After a forward, its input stays. While R0 runs, the worker holds both
  // inputs and the stash. While a backward runs, it also holds a gradient. From
  // B0 on it holds the gradient sum.
  EXPECT_EQ(bytes,
            (std::vector<int64_t>{20, 1020, 2020, 2220, 2240, 1240, 1240, 40}));
  Case kept = makeCase("gpipe", 2, 2);
  EXPECT_EQ(simulate(kept.problem, kept.schedule).peakActivations,
            (std::vector<int32_t>{2, 2}));
}

/// If a recompute is left out, the stash of the forward is kept.
TEST(Recompute, KeepsTheStashIfOmitted) {
  Case c = withRecompute(makeCase("1f1b", 2, 2), Recompute::Early);
  c.problem.bytes = {{0, 0, 100, 100, 0}, {0, 0, 200, 200, 0}};
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.peakBytes, (std::vector<int64_t>{100, 200}));
  EXPECT_EQ(timing.peakActivations, (std::vector<int32_t>{1, 1}));
}

/// Every scheme is valid with early and with fused recomputes, and with whole
/// and with split backwards. It is not faster than a bound. No worker holds
/// more micro-batches than without recomputes.
TEST(Recompute, OfEverySchemeIsValid) {
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 3, 4, 8})
      for (const Choice &choice : choices(scheme, d))
        for (int32_t n : {1, d, 2 * d + 1, 4 * d})
          for (bool split : {false, true})
            for (Recompute how : {Recompute::Early, Recompute::Fused}) {
              if (!canPlan(scheme, d, n, choice))
                continue;
              SCOPED_TRACE(nameOf(scheme, d, n, choice));
              Case plain =
                  makeCase(scheme.name, d, n, {4, 9, 5, 4}, split, choice);
              Case c = withRecompute(plain, how);
              EXPECT_GE(makespan(c), makespan(plain));
              auto peaks = simulate(c.problem, c.schedule).peakActivations;
              auto most =
                  simulate(plain.problem, plain.schedule).peakActivations;
              for (int32_t w = 0; w < d; ++w)
                EXPECT_LE(peaks[w], most[w]);
            }
}

TEST(Recompute, HasALetter) {
  Case c = withRecompute(makeCase("chimera", 2, 2), Recompute::Fused);
  std::string grid = gridOf(c, simulate(c.problem, c.schedule), false);
  EXPECT_NE(grid.find(" R0 B0"), std::string::npos) << grid;
  EXPECT_NE(grid.find(" r1 b1"), std::string::npos) << grid;
}

} // namespace
} // namespace chimera::schedule
