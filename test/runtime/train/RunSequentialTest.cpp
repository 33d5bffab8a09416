//===- RunSequentialTest.cpp - Runs without a pipeline --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunSequential.h"

#include "runtime/model/ExactStage.h"
#include "runtime/watch/EndProcess.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Makes a run of `steps` steps, which calls `onStep` after each step, and
/// keeps the result.
struct Trained {
  explicit Trained(
      uint64_t steps,
      std::function<void(const StepEvent &)> onStep = [](const StepEvent &) {})
      : program(program::samplePipeline({.bidirectional = true})),
        run{.program = program, .stages = makeExactStage, .data = data} {
    run.steps = steps;
    run.gatherWeights = run.gatherGradients = true;
    run.onStep = std::move(onStep);
    run.onResult = [this](const RunResult &found) { result = found; };
  }

  uint32_t stages() const {
    return static_cast<uint32_t>(program.stages.size());
  }

  program::ProgramT program;
  SyntheticData data{1};
  TrainingRun run;
  RunResult result;
};

TEST(RunSequential, HasTheResultOfThePipeline) {
  std::vector<double> losses[2];
  Trained pipeline(3, [&](const StepEvent &event) {
    losses[0].push_back(event.loss->mean);
  });
  runOnHost(pipeline.run, {});
  Trained alone(3, [&](const StepEvent &event) {
    losses[1].push_back(event.loss->mean);
  });
  std::vector<uint32_t> computing;
  uint32_t ready = 0;
  runSequential(alone.run,
                {.threads = 5,
                 .setThreads = [&](uint32_t n) { computing.push_back(n); },
                 .onReady =
                     [&](const HostResources &share) {
                       EXPECT_EQ(share.ranks, 1u);
                       EXPECT_EQ(share.threads.computing, 5u);
                       ++ready;
                     }},
                alone.stages());
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(pipeline.result.weights, alone.result.weights);
  EXPECT_EQ(pipeline.result.gradients, alone.result.gradients);
  EXPECT_EQ(alone.result.steps, 3u);
  EXPECT_TRUE(alone.result.ranks.empty());
  EXPECT_EQ(ready, 1u);
  EXPECT_EQ(computing, std::vector<uint32_t>(2, 5))
      << "the thread that trains, and that which has the result";
}

TEST(RunSequential, NeedsNeitherFunctionNorResult) {
  Trained quiet(1);
  quiet.run.onStep = nullptr;
  quiet.run.onResult = nullptr;
  runSequential(quiet.run, {}, quiet.stages());
}

TEST(RunSequential, RefusesWhatTheMemoryCannotHold) {
  Trained large(1);
  for (program::Stage &stage : large.program.stages)
    stage.mutate_weights_bytes(uint64_t(1) << 50);
  EXPECT_THROW(
      runSequential(large.run,
                    {.onReady = [](const HostResources &) { ADD_FAILURE(); }},
                    large.stages()),
      std::invalid_argument);
}

TEST(RunSequential, StopsWithTheResultOfTheStepsItHad) {
  Signals signals;
  Trained stopped(100000, [](const StepEvent &event) {
    if (event.step != 2)
      return;
    kill(getpid(), SIGUSR1);
    std::this_thread::sleep_for(100ms);
  });
  stopped.run.signals = &signals;
  runSequential(stopped.run, {}, stopped.stages());
  EXPECT_GE(stopped.result.steps, 3u);
  EXPECT_LT(stopped.result.steps, 100000u);
  Trained whole(stopped.result.steps);
  runSequential(whole.run, {}, whole.stages());
  EXPECT_EQ(stopped.result.weights, whole.result.weights);
}

/// Makes a sequential run, which ends this process at its end.
void runToItsEnd(Trained &trained) {
  setEndProcess([](int status) { _exit(status); });
  Signals signals;
  trained.run.signals = &signals;
  runSequential(trained.run, {}, trained.stages());
}

TEST(RunSequentialDeathTest, ASignalEndsItWithAReport) {
  EXPECT_EXIT(
      {
        Trained trained(3, [](const StepEvent &event) {
          if (event.step != 1)
            return;
          kill(getpid(), SIGTERM);
          sleep(1000);
        });
        runToItsEnd(trained);
      },
      testing::ExitedWithCode(128 + SIGTERM), "ended by SIGTERM in step 2");
}

TEST(RunSequentialDeathTest, ASignalEndsItWhileItSaves) {
  EXPECT_EXIT(
      {
        Trained trained(3);
        trained.run.onResult = [](const RunResult &) {
          kill(getpid(), SIGINT);
          sleep(1000);
        };
        runToItsEnd(trained);
      },
      testing::ExitedWithCode(128 + SIGINT), "ended by SIGINT while saving");
}

TEST(RunSequentialDeathTest, SavingThatHangsEndsIt) {
  EXPECT_EXIT(
      {
        Trained trained(3);
        trained.run.timeout = 200ms;
        trained.run.onResult = [](const RunResult &) { sleep(1000); };
        runToItsEnd(trained);
      },
      testing::ExitedWithCode(1),
      "timed out after 0.2 s waiting for progress of its saving");
}
} // namespace
