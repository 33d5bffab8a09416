//===- AsynchronousRunTest.cpp - Runs without a flush ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ExactStage.h"
#include "runtime/proof/Verify.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/train/ExactTraining.h"
#include "test/runtime/train/Failures.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using program::Updates;
using test::sequential;

namespace {
/// Checks that the losses, the weights and the last gradients of a pipelined
/// run equal those of training on one device.
void expectSequentialResult(const program::ProgramT &program, uint64_t steps) {
  SequentialResult expected = sequential(program, steps);
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = steps;
  run.timeout = std::chrono::seconds(30);
  run.gatherWeights = run.gatherGradients = run.checkReplicas = true;
  std::vector<uint64_t> losses;
  run.onStep = [&](const StepEvent &event) {
    ASSERT_TRUE(event.loss);
    EXPECT_EQ(event.step, losses.size());
    losses.push_back(event.loss->sum);
  };
  bool ended = false;
  run.onResult = [&](const RunResult &result) {
    ended = true;
    EXPECT_EQ(result.weights, expected.weights);
    EXPECT_EQ(result.gradients, expected.gradients);
    for (size_t rank = 0; rank < result.ranks.size(); ++rank) {
      const program::WorkerT &worker =
          *program.workers[rank % program.workers.size()];
      EXPECT_EQ(result.ranks[rank].instructions,
                worker.instructions.size() +
                    (steps - 2) * (worker.body_end - worker.body_begin));
      EXPECT_LE(result.ranks[rank].peakBytes, worker.peak_bytes);
    }
  };
  runInProcess(run);
  EXPECT_TRUE(ended);
  ASSERT_EQ(losses.size(), steps);
  for (uint64_t step = 0; step < steps; ++step)
    EXPECT_EQ(losses[step], expected.losses[step].sum) << "step " << step;
}

TEST(AsynchronousRun, EqualsTheSequentialRunWithItsStaleWeights) {
  for (Updates updates : {Updates::EachMicroBatch, Updates::EachStep})
    for (uint32_t workers : {1, 2, 3, 4, 6})
      for (uint32_t more : {0, 1, 5})
        for (uint64_t steps : {1, 2, 5}) {
          program::ProgramT program = program::sampleAsynchronous(
              {.workers = workers,
               .microBatches = workers + more,
               .splitBackward = more % 2 == 1,
               .firstBackwardOverwrites = steps > 1,
               .dataParallel = workers < 4 ? 1 + more % 2 : 1},
              updates);
          SCOPED_TRACE(program.schedule + " D=" + std::to_string(workers) +
                       " N=" + std::to_string(workers + more) +
                       " T=" + std::to_string(steps));
          ASSERT_TRUE(program::verifyProgram(program).empty());
          expectSequentialResult(program, steps);
          if (HasFailure())
            return;
        }
}

// Shows that the comparison of results can fail: the three update rules give
// different weights.
TEST(AsynchronousRun, EachRuleOfUpdatesTrainsItsOwnWay) {
  program::ProgramT program = program::sampleAsynchronous(
      {.workers = 3, .microBatches = 4}, Updates::EachMicroBatch);
  SequentialResult each = sequential(program, 3);
  program.updates = Updates::EachStep;
  SequentialResult once = sequential(program, 3);
  program.updates = Updates::Flush;
  SequentialResult flush = sequential(program, 3);
  EXPECT_NE(each.weights, once.weights);
  EXPECT_NE(each.weights, flush.weights);
  EXPECT_NE(once.weights, flush.weights);
  // The first two steps of PipeDream-2BW read only the initial weights. So the
  // loss of the first step is the same as with a flush, and the loss of the
  // second step is not.
  EXPECT_EQ(once.losses[0].sum, flush.losses[0].sum);
  EXPECT_NE(once.losses[1].sum, flush.losses[1].sum);
}

TEST(AsynchronousRun, ZeroStepsLeaveTheInitialWeights) {
  program::ProgramT program = program::sampleAsynchronous(
      {.workers = 3, .microBatches = 4}, Updates::EachStep);
  SequentialResult expected = sequential(program, 0);
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 0;
  run.gatherWeights = true;
  run.onResult = [&](const RunResult &result) {
    EXPECT_EQ(result.weights, expected.weights);
  };
  runInProcess(run);
}

// In the last step, which is in the epilogue, loading labels fails. The report
// must name the instruction that failed, and the rank for which another rank
// waits.
TEST(AsynchronousRun, AFailureInTheEpilogueIsReported) {
  program::ProgramT program = program::sampleAsynchronous(
      {.workers = 3, .microBatches = 4}, Updates::EachStep);
  class Data final : public DataSource {
  public:
    explicit Data(std::chrono::milliseconds pause) : pause(pause) {}
    void load(program::ValueKind kind, MicroBatch microBatch,
              Bytes output) override {
      if (kind == program::ValueKind::Labels && microBatch.step == 2) {
        // Meanwhile rank 1 reaches its wait.
        std::this_thread::sleep_for(pause);
        throw std::runtime_error("the disk is gone");
      }
      SyntheticData(1).load(kind, microBatch, output);
    }

  private:
    const std::chrono::milliseconds pause;
  };
  test::retryUntilSuccess(
      std::chrono::seconds(1),
      [&](std::chrono::milliseconds pause) -> std::string {
        Data data(pause);
        TrainingRun run{
            .program = program, .stages = makeExactStage, .data = data};
        run.steps = 3;
        const std::string text = test::failureOf(run);
        for (const char *part :
             {"rank 2 (worker 2) failed: the disk is gone",
              "rank 2 (worker 2): step 3, instruction ",
              "load labels pipeline 0 stage 2 micro-batch 0, from "
              "sample.mlir:3:3",
              "rank 1 (worker 1): step 3, instruction ",
              "; waiting for rank 2"})
          if (text.find(part) == std::string::npos)
            return text + "\nlacks " + part;
        return "";
      });
}
} // namespace
