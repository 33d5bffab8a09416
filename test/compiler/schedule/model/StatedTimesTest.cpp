//===- StatedTimesTest.cpp - Tests of times that a user states ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/StatedTimes.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

/// `stages` stages on two workers, one after another.
Problem onTwoWorkers(int32_t stages) {
  Problem problem;
  problem.workers = 2;
  problem.stages.resize(stages);
  Pipeline pipeline;
  for (int32_t s = 0; s < stages; ++s)
    pipeline.workers.push_back(s * 2 / stages);
  pipeline.microBatches = {0, 1};
  problem.pipelines = {pipeline};
  return problem;
}

TEST(StatedTimes, OfAWorkerAreDividedAmongItsStages) {
  for (int32_t each : {1, 2, 3, 4}) {
    Problem problem = onTwoWorkers(2 * each);
    StatedTimes times;
    times.forward = 6;
    times.backward = 15;
    times.update = 3;
    const int64_t perUnit = times.apply(problem);
    for (const StageCost &cost : problem.stages) {
      EXPECT_EQ(cost.forward * each, 6 * perUnit);
      EXPECT_EQ(cost.backward * each, 15 * perUnit);
      EXPECT_EQ(cost.update * each, 3 * perUnit);
      EXPECT_EQ(cost.inputGradient + cost.weightGradient, cost.backward);
      EXPECT_EQ(cost.recompute, cost.forward);
    }
  }
}

TEST(StatedTimes, OfAStageAreNotDivided) {
  Problem problem = onTwoWorkers(4);
  StatedTimes times{.scope = StatedTimes::Scope::Stage, .forward = 6};
  EXPECT_EQ(times.apply(problem), 1);
  EXPECT_EQ(problem.stages[3].forward, 6);
  EXPECT_EQ(problem.stages[3].backward, 12);
  EXPECT_EQ(problem.stages[3].weightGradient, 6);
}

TEST(StatedTimes, OfWeightGradientsLeaveTheRest) {
  Problem problem = onTwoWorkers(2);
  problem.splits = true;
  StatedTimes times{.perUnit = 10, .forward = 10, .weightGradient = 7};
  const int64_t factor = times.apply(problem) / 10;
  EXPECT_EQ(problem.stages[0].weightGradient, 7 * factor);
  EXPECT_EQ(problem.stages[0].inputGradient, 13 * factor);
}

TEST(StatedTimes, OfMessagesReplaceThoseOfTheLink) {
  Problem problem = onTwoWorkers(4);
  problem.link.send.alpha = 9;
  problem.node.emplace();
  StatedTimes times{.forward = 1};
  times.messages.emplace_back(findMessageOption("p2p"), 5);
  times.messages.emplace_back(findMessageOption("receive-per-mib"), 3);
  const int64_t perUnit = times.apply(problem);
  EXPECT_EQ(perUnit, 2); // two stages a worker
  EXPECT_FALSE(problem.node);
  EXPECT_EQ(problem.link.alpha, 5 * perUnit);
  EXPECT_EQ(problem.link.send.alpha, 0);
  EXPECT_EQ(problem.link.receive.beta, 3 * perUnit);
  EXPECT_EQ(problem.link.receive.betaBytes, kMebibyte);
  EXPECT_EQ(findMessageOption("pigeon"), nullptr);
}

TEST(StatedTimes, LeaveOwnCostsInFinerTicks) {
  Problem problem = onTwoWorkers(2);
  problem.stages[1] = {4, 8, 5, 3, 4, 1};
  problem.stages[1].pairedForward = 2;
  problem.link.alpha = 7;
  StatedTimes times{.scope = StatedTimes::Scope::OwnCosts, .perUnit = 10};
  times.messages.emplace_back(findMessageOption("send"), 25); // 2.5 units
  EXPECT_EQ(times.apply(problem, /*ownTicks=*/2), 20);
  EXPECT_EQ(problem.stages[1].backward, 80);
  EXPECT_EQ(problem.stages[1].pairedForward, 20);
  EXPECT_EQ(problem.link.alpha, 70);
  EXPECT_EQ(problem.link.send.alpha, 50);
}

TEST(StatedTimes, AreOneTickEachIfNoneIsStated) {
  Problem problem = onTwoWorkers(4);
  problem.pipelines[0].backwardParts = 2;
  const StatedTimes times;
  EXPECT_TRUE(times.areDefault());
  times.apply(problem);
  EXPECT_EQ(problem.stages[0].forward, 1);
  EXPECT_EQ(problem.stages[0].backward, 2); // a tick for each part
}

TEST(StatedTimes, DoNotOverflow) {
  Problem problem = onTwoWorkers(2);
  StatedTimes times{.forward = int64_t{1} << 62};
  times.apply(problem);
  EXPECT_EQ(problem.stages[0].backward, INT64_MAX);
  EXPECT_NE(check(problem), "");
}

} // namespace
} // namespace chimera::schedule
