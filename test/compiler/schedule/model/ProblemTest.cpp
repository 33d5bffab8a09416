//===- ProblemTest.cpp - Problems that are refused ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

namespace chimera::schedule {
namespace {

Problem sound() { return makeCase("chimera", 4, 4).problem; }

TEST(Problem, IsSound) { EXPECT_EQ(check(sound()), ""); }

TEST(Problem, NeedsWorkers) {
  Problem problem = sound();
  problem.workers = 0;
  EXPECT_EQ(check(problem), "expected at least one worker, got 0");
}

TEST(Problem, NeedsStages) {
  Problem problem = sound();
  problem.stages.clear();
  EXPECT_EQ(check(problem), "expected at least one stage, got none");
}

TEST(Problem, RefusesANegativeLatency) {
  Problem problem = sound();
  problem.link.alpha = -1;
  EXPECT_EQ(check(problem), "expected a message latency of at least 0, got -1");
}

TEST(Problem, NeedsPositiveCosts) {
  for (int64_t StageCost::*field :
       {&StageCost::forward, &StageCost::backward, &StageCost::inputGradient,
        &StageCost::weightGradient}) {
    Problem problem = sound();
    problem.stages[2].*field = 0;
    EXPECT_EQ(check(problem), "expected costs of at least 1 on stage 2, got 0");
  }
}

TEST(Problem, RefusesNegativeTimesOfUpdatesAndSums) {
  Problem problem = sound();
  problem.stages[1].update = -3;
  EXPECT_EQ(check(problem),
            "expected an update of at least 0 on stage 1, got -3");
  problem = sound();
  problem.allReduceMessage = {-1, 0, 1};
  EXPECT_EQ(check(problem),
            "expected a message time of all-reduces of at least 0, got -1");
  problem = sound();
  problem.width = 0;
  EXPECT_EQ(check(problem),
            "expected a data-parallel width of at least 1, got 0");
}

TEST(Problem, RefusesTimesThatDoNotFit) {
  Problem problem = sound();
  problem.stages[1].backward = int64_t{1} << 62;
  EXPECT_EQ(check(problem),
            "expected times that sum to less than 2^62 over the step");
  problem = sound();
  problem.link.alpha = int64_t{1} << 60;
  EXPECT_EQ(check(problem),
            "expected times that sum to less than 2^62 over the step");
}

TEST(Problem, RefusesANegativeMessageTime) {
  for (Link link : {Link{0, -1, 1}, Link{0, 1, 0}}) {
    Problem problem = sound();
    problem.link = link;
    EXPECT_EQ(
        check(problem),
        "expected a message latency of at least 0 for at least 1 byte, got " +
            std::to_string(link.beta) + " for " +
            std::to_string(link.betaBytes));
  }
}

TEST(Problem, RefusesNegativeTimesThatMessagesOccupy) {
  for (auto [end, name] :
       {std::pair(&Link::send, "sending"), {&Link::receive, "receiving"}}) {
    std::string expected = std::string("expected a time for ") + name;
    Problem problem = sound();
    (problem.link.*end).alpha = -3;
    EXPECT_EQ(check(problem), expected + " a message of at least 0, got -3");
    problem.link.*end = {0, 1, 0};
    EXPECT_EQ(check(problem), expected + " a message of at least 0 for at "
                                         "least 1 byte, got 1 for 0");
    problem.link.*end = {int64_t{1} << 60, 0, 1};
    EXPECT_EQ(check(problem),
              "expected times that sum to less than 2^62 over the step");
  }
}

TEST(Problem, NeedsBytesOfEveryStage) {
  Problem problem = sound();
  problem.bytes.resize(3);
  EXPECT_EQ(check(problem),
            "expected the bytes of all 4 stages or of none, got 3");
}

TEST(Problem, RefusesNegativeBytes) {
  for (int64_t StageBytes::*field :
       {&StageBytes::weights, &StageBytes::optimizer, &StageBytes::stash,
        &StageBytes::weightStash, &StageBytes::boundary}) {
    Problem problem = sound();
    problem.bytes.resize(4);
    problem.bytes[3].*field = -2;
    EXPECT_EQ(check(problem),
              "expected bytes of at least 0 on stage 3, got -2");
  }
}

TEST(Problem, RefusesBytesThatDoNotFit) {
  for (int64_t StageBytes::*field :
       {&StageBytes::stash, &StageBytes::weightStash}) {
    Problem problem = sound();
    problem.bytes.resize(4);
    problem.bytes[0].*field = int64_t{1} << 60;
    EXPECT_EQ(check(problem),
              "expected bytes that sum to less than 2^62 over the step");
  }
}

TEST(Problem, RefusesMessagesThatTakeTooLong) {
  Problem problem = sound();
  problem.bytes.resize(4);
  problem.bytes[0].boundary = int64_t{1} << 40;
  problem.link.beta = int64_t{1} << 40;
  EXPECT_EQ(check(problem),
            "expected times that sum to less than 2^62 over the step");
}

TEST(Problem, NeedsAMemoryCapForEveryWorker) {
  Problem problem = sound();
  problem.bucketBytes = 8;
  EXPECT_EQ(check(problem), "");
  problem.bucketBytes = 7;
  EXPECT_EQ(check(problem),
            "expected buckets of at least 8 bytes, or 0 for none, got 7");
  problem.bucketBytes = 0;
  problem.memoryCaps = {1, 2, 3};
  EXPECT_EQ(check(problem),
            "expected memory caps for all 4 workers or for none, got 3");
  problem.memoryCaps = {1, 2, 3, -4};
  EXPECT_EQ(check(problem),
            "expected a memory cap of at least 0 on worker 3, got -4");
}

/// A message takes alpha + bytes · beta / betaBytes, rounded up.
TEST(Problem, MessagesTakeAlphaAndBetaForTheBoundary) {
  Problem problem = sound();
  problem.bytes.resize(4);
  problem.bytes[1].boundary = 10;
  problem.link = {7, 2, 3};
  EXPECT_EQ(check(problem), "");
  EXPECT_EQ(problem.messageTime(problem.link, 0), 7);
  EXPECT_EQ(problem.messageTime(problem.link, 1), 7 + 7);
}

/// Rank r is on node r / devices. Two workers use the links inside a node only
/// if they are on one node in every copy of the pipeline. The drawings show the
/// workers of all copies, with `|` between nodes.
TEST(Problem, JoinsWorkersOfANodeByItsLinks) {
  struct Row {
    int32_t workers, width, devices;
    std::vector<std::pair<int32_t, int32_t>>
        near; ///< pairs of neighbours that use the links inside a node
  };
  const Row rows[] = {
      {4, 1, 2, {{0, 1}, {2, 3}}},         // 01 | 23
      {4, 2, 8, {{0, 1}, {1, 2}, {2, 3}}}, // 0123 0123
      {4, 1, 3, {{0, 1}, {1, 2}}},         // 012 | 3
      {4, 2, 3, {{0, 1}}},                 // 012 | 30 1 | 23
      {2, 3, 3, {}},                       // 01 0 | 1 01
      {2, 2, 3, {}},                       // 01 0 | 1
      {2, 1, 3, {{0, 1}}},                 // 01
      {4, 2, 1, {}},                       // 0 | 1 | 2 | …
  };
  for (const Row &row : rows) {
    Workload work;
    work.workers = row.workers;
    work.width = row.width;
    work.link.alpha = 9;
    work.node = {row.devices, {{{1, 0, 1}}}};
    for (int32_t w = 0; w + 1 < row.workers; ++w) {
      bool isNear = std::ranges::count(row.near, std::pair(w, w + 1)) > 0;
      EXPECT_EQ(work.linkBetween(w, w + 1).alpha, isNear ? 1 : 9)
          << row.workers << " " << row.width << " " << row.devices << " " << w;
      EXPECT_EQ(work.linkBetween(w + 1, w).alpha, isNear ? 1 : 9);
    }
  }
  Workload alike;
  alike.workers = 2;
  alike.link.alpha = 9;
  EXPECT_EQ(alike.linkBetween(0, 1).alpha, 9);
}

TEST(Problem, RefusesANodeOfNoDevicesAndItsWrongTimes) {
  Problem problem = sound();
  problem.node = {0, {}};
  EXPECT_EQ(check(problem), "expected nodes of at least 1 device, got 0");
  problem.node = {1, {}};
  EXPECT_EQ(check(problem), "");
  problem.node->links.link.alpha = -1;
  EXPECT_EQ(check(problem), "expected a message latency of at least 0, got -1");
  problem.node->links.link.alpha = int64_t{1} << 60;
  EXPECT_EQ(check(problem),
            "expected times that sum to less than 2^62 over the step");
}

/// A worker may have several stages of one pipeline.
TEST(Problem, AllowsVirtualStages) {
  Problem problem;
  problem.workers = 2;
  problem.stages.assign(4, {});
  problem.pipelines = {{false, {0, 1, 1, 0}, {0}}};
  EXPECT_EQ(check(problem), "");
}

TEST(Problem, NeedsMicroBatches) {
  Problem problem = sound();
  problem.pipelines.clear();
  EXPECT_EQ(check(problem), "expected at least one micro-batch, got none");
  problem = sound();
  problem.pipelines[0].microBatches = {0, 1, 2, 3};
  problem.pipelines[1].microBatches.clear();
  EXPECT_EQ(check(problem), "expected pipeline 1 to have micro-batches, got "
                            "none");
}

TEST(Problem, PlacesEveryStage) {
  Problem problem = sound();
  problem.pipelines[1].workers.pop_back();
  EXPECT_EQ(check(problem), "expected pipeline 1 to place 4 stages, got 3");
}

TEST(Problem, PlacesStagesOnItsWorkers) {
  for (int32_t worker : {4, -1}) {
    Problem problem = sound();
    problem.pipelines[0].workers[1] = worker;
    EXPECT_EQ(check(problem),
              "expected pipeline 0 to use workers below 4, got " +
                  std::to_string(worker));
  }
}

TEST(Problem, NumbersMicroBatchesFromZero) {
  for (int32_t batch : {4, -1}) {
    Problem problem = sound();
    problem.pipelines[1].microBatches[1] = batch;
    EXPECT_EQ(check(problem),
              "expected pipeline 1 to have micro-batches below 4, got " +
                  std::to_string(batch));
  }
}

TEST(Problem, GivesEachMicroBatchOnePipeline) {
  Problem problem = sound();
  problem.pipelines[1].microBatches[0] = 0;
  EXPECT_EQ(check(problem), "expected each micro-batch in one pipeline, got "
                            "micro-batch 0 twice, again in pipeline 1");
}

} // namespace
} // namespace chimera::schedule
