//===- SequentialTest.cpp - Pipelines compute the same as one device ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Sequential.h"
#include "runtime/model/ExactStage.h"
#include "runtime/proof/Verify.h"
#include "runtime/train/Gather.h"
#include "runtime/train/Run.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/train/ExactTraining.h"
#include "test/runtime/train/Failures.h"

#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;
using test::sequential;

namespace {
constexpr uint64_t kSteps = 3;

using Recompute = program::SampleOptions::Recompute;

struct Case {
  uint32_t workers, microBatches;
  bool bidirectional, split;
  uint32_t copies;
  bool doubled = false;
  uint32_t parts = 1;
  Recompute recompute = Recompute::None;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << "D=" << c.workers << " N=" << c.microBatches
          << (c.bidirectional ? " bidirectional" : "")
          << (c.split ? " split" : "") << " W=" << c.copies
          << (c.doubled ? " doubled" : "") << " parts=" << c.parts
          << " recompute=" << static_cast<int>(c.recompute);
}

class ExactRun : public testing::TestWithParam<Case> {};

TEST_P(ExactRun, EqualsTheSequentialRun) {
  const Case &c = GetParam();
  program::SampleOptions sample;
  sample.workers = c.workers;
  sample.microBatches = c.microBatches;
  sample.bidirectional = c.bidirectional;
  sample.splitBackward = c.split;
  sample.firstBackwardOverwrites = c.workers % 2 == 0;
  sample.dataParallel = c.copies;
  sample.doubledForwards = c.doubled;
  sample.backwardParts = c.parts;
  sample.recompute = c.recompute;
  program::ProgramT program = program::samplePipeline(sample);
  ASSERT_TRUE(program::verifyProgram(program).empty());
  SequentialResult expected = sequential(program, kSteps);
  ASSERT_EQ(expected.losses.size(), kSteps);

  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = kSteps;
  run.timeout = std::chrono::seconds(30);
  run.gatherWeights = run.gatherGradients = run.checkReplicas = true;
  std::vector<uint64_t> losses;
  run.onStep = [&](const StepEvent &event) {
    ASSERT_TRUE(event.loss);
    losses.push_back(event.loss->sum);
  };
  bool ended = false;
  run.onResult = [&](const RunResult &result) {
    ended = true;
    EXPECT_EQ(result.weights, expected.weights);
    EXPECT_EQ(result.gradients, expected.gradients);
    ASSERT_EQ(result.ranks.size(), program::rankCount(program));
    for (size_t rank = 0; rank < result.ranks.size(); ++rank)
      EXPECT_EQ(result.ranks[rank].instructions,
                kSteps *
                    program.workers[rank % c.workers]->instructions.size());
  };
  runInProcess(run);
  EXPECT_TRUE(ended);
  ASSERT_EQ(losses.size(), kSteps);
  for (uint64_t step = 0; step < kSteps; ++step)
    EXPECT_EQ(losses[step], expected.losses[step].sum) << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(
    Samples, ExactRun,
    testing::Values(Case{1, 1, false, false, 1}, Case{1, 3, true, false, 1},
                    Case{2, 2, false, false, 1}, Case{2, 4, true, true, 1},
                    Case{3, 5, true, false, 2}, Case{4, 4, true, false, 1},
                    Case{4, 8, false, true, 1}, Case{4, 4, true, true, 2},
                    Case{4, 7, true, false, 3}, Case{8, 8, true, false, 1},
                    Case{8, 16, false, false, 2}));

INSTANTIATE_TEST_SUITE_P(
    RangesAndParts, ExactRun,
    testing::Values(Case{1, 1, false, false, 1, false, 2, Recompute::None},
                    Case{2, 4, false, false, 1, true, 1, Recompute::None},
                    Case{2, 5, true, false, 2, true, 1, Recompute::All},
                    Case{3, 3, false, true, 1, false, 2, Recompute::None},
                    Case{4, 4, true, false, 1, false, 4,
                         Recompute::AllButFirst},
                    Case{4, 8, true, true, 2, true, 2, Recompute::AllButFirst},
                    Case{4, 7, true, false, 1, true, 2, Recompute::All},
                    Case{4, 8, true, false, 2, false, 1, Recompute::All}));

// The results do not depend on the number of micro-batches in a forward, or on
// recomputes. They depend on the number of parts: an exact stage computes
// different numbers for a part and for a whole micro-batch.
TEST(ExactRun, RangesAndRecomputesComputeTheSame) {
  SequentialResult right = sequential(program::samplePipeline(), kSteps);
  auto with = [](bool doubled, uint32_t parts, Recompute recompute) {
    program::SampleOptions sample;
    sample.doubledForwards = doubled;
    sample.backwardParts = parts;
    sample.recompute = recompute;
    return sequential(program::samplePipeline(sample), kSteps).weights;
  };
  EXPECT_EQ(with(true, 1, Recompute::None), right.weights);
  EXPECT_EQ(with(true, 1, Recompute::All), right.weights);
  EXPECT_NE(with(false, 2, Recompute::None), right.weights);
  EXPECT_NE(with(false, 4, Recompute::None), with(false, 2, Recompute::None));
}

// Shows that a missing contribution changes the results.
TEST(ExactRun, ALostContributionIsSeen) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SequentialResult right = sequential(program, kSteps);
  // Remove one micro-batch from the program.
  program.micro_batches -= 1;
  program.pipelines[0]->micro_batches.pop_back();
  SequentialResult other = sequential(program, kSteps);
  EXPECT_NE(right.weights, other.weights);
  EXPECT_NE(right.losses.back().sum, other.losses.back().sum);
}

// A run that continues from a checkpoint begins with the next step. So a step
// is evaluated before its checkpoint. Only the last step is evaluated after its
// checkpoint: a run that continues from there has no step left, and evaluates.
TEST(Sequential, EvaluatesBeforeACheckpoint) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  std::vector<std::unique_ptr<Stage>> stages;
  for (uint32_t s = 0; s < 2; ++s)
    stages.push_back(makeExactStage(program, s));
  SyntheticData data(1);
  std::vector<std::string> order;
  SequentialOptions options;
  options.checkpointEvery = 4;
  options.onCheckpoint = [&](uint64_t step, bool, const auto &) {
    order.push_back("checkpoint " + std::to_string(step));
  };
  options.evaluation = {.data = &data, .passes = 1, .every = 2};
  options.evaluation.onResult = [&](uint64_t step, const EvaluationResult &) {
    order.push_back("evaluation " + std::to_string(step));
  };
  trainSequentially(program, stages, data, 5, options);
  EXPECT_EQ(order, (std::vector<std::string>{"evaluation 2", "evaluation 4",
                                             "checkpoint 4", "checkpoint 5",
                                             "evaluation 5"}));
}

TEST(Sequential, RefusesAnotherNumberOfStages) {
  program::ProgramT program = program::samplePipeline({.workers = 4});
  std::vector<std::unique_ptr<Stage>> stages;
  for (uint32_t s = 0; s < 3; ++s)
    stages.push_back(makeExactStage(program, s));
  SyntheticData data(1);
  EXPECT_THROW(trainSequentially(program, stages, data, 1),
               std::invalid_argument);
}

TEST(CheckReplicas, NamesTheOneThatDiffers) {
  // Give each replica another seed, and so other initial weights.
  program::ProgramT program = program::samplePipeline({.dataParallel = 2});
  SyntheticData data(1);
  std::atomic<uint64_t> made{0};
  TrainingRun run{.program = program,
                  .stages =
                      [&](const program::ProgramT &original, uint32_t stage) {
                        program::ProgramT other = original;
                        other.seed = made.fetch_add(1);
                        return makeExactStage(other, stage);
                      },
                  .data = data};
  run.checkReplicas = true;
  const std::string report = test::failureOf(run);
  EXPECT_NE(report.find("expected bit-identical replicas, but the weights of "
                        "stage 0 of pipeline 0 at rank 4"),
            std::string::npos)
      << report;
}
} // namespace
