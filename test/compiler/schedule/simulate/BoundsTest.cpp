//===- BoundsTest.cpp - Bounds against their closed forms -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

int64_t timeOfBound(const Problem &problem, const std::string &name) {
  for (const Bound &bound : bounds(problem))
    if (bound.name == name)
      return bound.time;
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Bounds, HaveTexts) {
  std::vector<Bound> all = bounds(makeCase("gpipe", 2, 2).problem);
  ASSERT_EQ(all.size(), 6u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name, "LB" + std::to_string(i + 1));
    for (const char *text : {all[i].formula, all[i].conditions, all[i].reason})
      EXPECT_STRNE(text, "");
  }
}

/// LB1 is the time of all actions of the busiest worker. Here that is the
/// worker with the slow stage.
TEST(Bounds, LB1IsTheWorkOfTheBusiestWorker) {
  Case c = makeCase("gpipe", 3, 5, {2, 3, 1, 1});
  c.problem.stages[1] = {20, 30, 1, 1};
  EXPECT_EQ(timeOfBound(c.problem, "LB1"), 5 * 50);
}

/// LB2 of a single pipeline is (N+D-1) (f+b). GPipe and 1F1B take exactly this
/// time.
TEST(Bounds, OneMachineOnALine) {
  for (const char *scheme : {"gpipe", "1f1b"})
    for (int32_t d : {1, 2, 5, 8})
      for (int32_t n : {1, 3, 8, 20}) {
        Case c = makeCase(scheme, d, n, {3, 5, 1, 1});
        std::vector<Bound> all = bounds(c.problem);
        EXPECT_EQ(timeOfBound(c.problem, "LB2"), (n + d - 1) * 8);
        EXPECT_EQ(gapTo(simulate(c.problem, c.schedule), bestBound(all)), 0);
      }
}

/// LB2 of a single pipeline with split backwards is the larger of two times.
/// The first one is (D-1) f + N (f+i) + max(N w, (D-1) i + w). The second one
/// is the time that worker 0 needs: D f + (D-1) i + N (i+w).
TEST(Bounds, OneMachineOnALineWithSplitBackwards) {
  for (int32_t d : {2, 4, 8})
    for (int32_t n : {1, 3, 8, 20})
      for (StageCost cost : {StageCost{1, 2, 1, 1},
                             {10, 21, 12, 9},
                             {2, 6, 3, 3},
                             {3, 5, 2, 3}}) {
        Case c = makeCase("1f1b", d, n, cost, true);
        int64_t f = cost.forward, i = cost.inputGradient,
                w = cost.weightGradient;
        int64_t closed =
            (d - 1) * f + n * (f + i) + std::max(n * w, (d - 1) * i + w);
        if (w <= i && n * f >= f + (d - 1) * i)
          EXPECT_EQ(timeOfBound(c.problem, "LB2"), closed);
        else
          EXPECT_GE(timeOfBound(c.problem, "LB2"), closed);
      }
}

/// LB2 with 2f pipelines in two directions is load + (D/(2f) - 1) (forward +
/// backward), where load is the time of the busiest worker's actions. For odd
/// D, (D-1)/2 replaces the factor D/(2f) - 1. This test skips doubling and
/// halving: forwards over two micro-batches raise the bound, and halves of
/// backwards lower it.
TEST(Bounds, OneMachineInTwoDirections) {
  const Scheme &chimera = *findScheme("chimera");
  for (int32_t d = 2; d <= 16; ++d)
    for (const Choice &choice : choices(chimera, d)) {
      if (concatenationOf(choice) == Concatenation::Doubling ||
          concatenationOf(choice) == Concatenation::Halving)
        continue;
      Case c = makeCase("chimera", d, 4 * d, {3, 7, 1, 1}, false, choice);
      int64_t ends = d % 2 ? (d - 1) / 2 : d / pipelinesOf(choice) - 1;
      EXPECT_EQ(timeOfBound(c.problem, "LB2"), (4 * d + ends) * 10)
          << nameOf(chimera, d, 4 * d, choice);
    }
}

/// LB2 if each worker has two chunks, each of half a stage. For chunks in a
/// loop, and for chunks in a V with whole backwards, it is load + (D-1)
/// (f+b)/2. For chunks in a V with split backwards it is load + (D-1) f/2.
TEST(Bounds, OneMachineWithVirtualStages) {
  for (int32_t d : {2, 4, 8})
    for (bool folded : {false, true})
      for (bool split : {false, true}) {
        Problem problem;
        problem.workers = d;
        problem.stages.assign(2 * d, {1, 2, 1, 1});
        problem.splits = split;
        Pipeline pipeline;
        for (int32_t s = 0; s < 2 * d; ++s)
          pipeline.workers.push_back(s < d    ? s
                                     : folded ? 2 * d - 1 - s
                                              : s - d);
        int32_t n = 4 * d;
        for (int32_t m = 0; m < n; ++m)
          pipeline.microBatches.push_back(m);
        problem.pipelines = {pipeline};
        int64_t expected = 6 * n + 3 * (d - 1);
        if (split)
          expected = 6 * n + d - 1;
        EXPECT_EQ(timeOfBound(problem, "LB2"), expected)
            << d << " " << folded << " " << split;
      }
}

/// LB3 is the time of the forward and the backward of one micro-batch, with its
/// messages.
TEST(Bounds, CriticalPath) {
  Case c = makeCase("1f1b", 4, 1, {2, 5, 3, 4});
  c.problem.link.alpha = 10;
  EXPECT_EQ(timeOfBound(c.problem, "LB3"), 4 * 7 + 6 * 10);
  c.problem.splits = true;
  EXPECT_EQ(timeOfBound(c.problem, "LB3"), 4 * 2 + 4 * 3 + 4 + 6 * 10);
  // A weight gradient of the last stage may take longer than the backward
  // through all other stages.
  c.problem.stages[3].weightGradient = 1000;
  EXPECT_EQ(timeOfBound(c.problem, "LB3"), 4 * 2 + 3 + 1000 + 3 * 10);
}

/// LB4: worker 0 holds each stash for D (f+b), where f and b are the times of a
/// forward and a backward. If its memory has room for fewer than D stashes,
/// stashes must wait for room, so a step takes longer.
TEST(Bounds, Memory) {
  Case c = makeCase("1f1b", 4, 32, {1, 2, 1, 1});
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), 0);
  c.problem.bytes.assign(4, {5, 1, 10, 10, 0});
  c.problem.memoryCaps.assign(4, 11 + 30);
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), 32 * 4 * 3 / 3);
  EXPECT_STREQ(bestBound(bounds(c.problem)).name, "LB4");
  // If not even one stash fits, there is no bound.
  c.problem.memoryCaps.assign(4, 6);
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), 0);
  // The product of bytes and time exceeds 64 bits here.
  c.problem.bytes.assign(4, {0, 0, int64_t{1} << 50, int64_t{1} << 50, 0});
  c.problem.memoryCaps.assign(4, 1);
  c.problem.stages.assign(4, {int64_t{1} << 40, int64_t{1} << 40, 1, 1});
  ASSERT_EQ(check(c.problem), "");
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), INT64_MAX);
}

/// The first input gradient may release a part of its stash before the worker
/// has a gradient sum. So for the bound, the worker needs the sum and the
/// smaller stash, or the whole stash without the sum.
TEST(Bounds, MemoryOfBothStashes) {
  Case c = makeCase("1f1b", 1, 4, {1, 2, 1, 1}, true);
  c.problem.bytes = {{5, 1, 10, 4, 0}};
  c.problem.memoryCaps = {6 + 15};
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), (4 * (10 * 2 + 4) + 14) / 15);
  c.problem.memoryCaps = {6 + 6};
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), 4 * 4 * 3 / 1);
  c.problem.bytes[0].weightStash = 30;
  c.problem.memoryCaps = {6 + 30};
  EXPECT_EQ(timeOfBound(c.problem, "LB4"), (4 * (10 * 2 + 30) + 29) / 30);
}

/// With stages in a V, each worker holds the two stashes of a micro-batch for
/// (2D+1) (f+i) + 2w together. f, i and w are the times of a forward, an input
/// gradient and a weight gradient.
TEST(Bounds, MemoryOnAV) {
  Problem problem;
  problem.workers = 4;
  problem.stages.assign(8, {1, 2, 1, 1});
  problem.splits = true;
  problem.pipelines = {{false, {0, 1, 2, 3, 3, 2, 1, 0}, {0, 1, 2, 3}}};
  problem.bytes.assign(8, {0, 0, 1, 1, 0});
  problem.memoryCaps.assign(4, 1);
  EXPECT_EQ(timeOfBound(problem, "LB4"), 4 * (9 * 2 + 2));
}

/// LB5 is the time that the messages of the busiest channel take, one after
/// another. The simulator lets messages of a channel overlap, so a simulated
/// step may be shorter than LB5.
TEST(Bounds, Messages) {
  Case c = makeCase("gpipe", 3, 10);
  c.problem.bytes = {{0, 0, 0, 0, 100}, {0, 0, 0, 0, 300}, {0, 0, 0, 0, 999}};
  c.problem.link = {1000, 1, 2};
  EXPECT_EQ(timeOfBound(c.problem, "LB5"), 10 * 150);
  // The pipelines of both directions use the channel from worker 0 to 1. One
  // sends activations over it, the other sends gradients.
  Case both = makeCase("chimera", 2, 10);
  both.problem.bytes = {{0, 0, 0, 0, 7}, {}};
  both.problem.link = {0, 1, 1};
  EXPECT_EQ(timeOfBound(both.problem, "LB5"), 70);
  EXPECT_FALSE(bounds(c.problem)[4].holdsForSimulator);
  EXPECT_STRNE(bestBound(bounds(c.problem)).name, "LB5");
}

/// Chimera with backwards of twice a forward: direct concatenation takes longer
/// than the bound. Fine-tuned doubling takes exactly the time of the bound.
TEST(Bounds, Gap) {
  Case direct = makeCase("chimera", 4, 8, {1, 2, 1, 1});
  EXPECT_DOUBLE_EQ(gapTo(simulate(direct.problem, direct.schedule),
                         bestBound(bounds(direct.problem))),
                   3.0 / 27.0);
  for (auto [d, n, time] : {std::tuple{4, 8, 27}, {8, 16, 57}, {8, 32, 105}}) {
    Case c = makeCase("chimera", d, n, {1, 2, 1, 1}, false,
                      chimeraWith(2, Concatenation::FineTunedDoubling));
    Timing timing = simulate(c.problem, c.schedule);
    EXPECT_EQ(timing.makespan, time);
    EXPECT_EQ(gapTo(timing, bestBound(bounds(c.problem))), 0);
  }
}

} // namespace
} // namespace chimera::schedule
