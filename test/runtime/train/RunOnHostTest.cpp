//===- RunOnHostTest.cpp - Runs that divide their host among ranks --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunOnHost.h"

#include "runtime/model/ExactStage.h"
#include "runtime/watch/EndProcess.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Makes a run of two ranks, and keeps what it reports about its use of the
/// host.
struct ReportedSteps {
  /// Runs one step. Uses simulated devices if `seed` is given.
  ReportedSteps(uint32_t threads, std::optional<uint64_t> seed) {
    program::ProgramT program = program::samplePipeline({.workers = 2});
    SyntheticData data(1);
    TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
    run.gatherWeights = true;
    run.onThread = [] { ADD_FAILURE() << "setThreads takes its place"; };
    run.onStep = [&](const StepEvent &) { EXPECT_EQ(shares.size(), 1u); };
    run.onResult = [&](const RunResult &result) { weights = result.weights; };
    HostOptions use;
    use.threads = threads;
    use.setThreads = [&](uint32_t each) {
      std::lock_guard lock(mutex);
      computing.push_back(each);
    };
    use.onReady = [&](const HostResources &share) {
      EXPECT_TRUE(computing.empty()) << "no rank has begun";
      shares.push_back(share);
    };
    runOnHost(run, use, seed);
  }

  std::vector<std::byte> weights;
  std::mutex mutex;
  std::vector<uint32_t> computing;
  std::vector<HostResources> shares;
};

TEST(RunOnHost, SharesTheCoresAmongItsRanks) {
  for (uint32_t asked : {0u, 3u}) {
    ReportedSteps told(asked, {});
    RankThreads share = shareCores(findCores(), 2, asked, ProgressMode::Off);
    ASSERT_EQ(told.shares.size(), 1u);
    EXPECT_EQ(told.shares[0].ranks, 2u);
    EXPECT_EQ(told.shares[0].threads.computing, share.computing);
    EXPECT_FALSE(told.shares[0].threads.progress);
    // The threads of the two ranks, and the thread that receives the result,
    // have set their number of computing threads.
    EXPECT_EQ(told.computing, std::vector<uint32_t>(3, share.computing));
  }
}

TEST(RunOnHost, WithASeedTakesSimulatedDevices) {
  ReportedSteps threads(1, {}), simulated(1, 7);
  EXPECT_EQ(threads.weights, simulated.weights);
  ASSERT_EQ(simulated.shares.size(), 1u);
  EXPECT_EQ(simulated.shares[0].ranks, 2u);
  // The one thread for both ranks, and the thread that receives the result,
  // have set their number of computing threads.
  EXPECT_EQ(simulated.computing, std::vector<uint32_t>(2, 1));
}

TEST(RunOnHost, RefusesWhatTheMemoryCannotHold) {
  program::ProgramT program =
      program::samplePipeline({.workers = 2, .microBatches = 1});
  program.workers[1]->buffers.emplace_back(
      program::ValueKind::Activation, uint64_t(1) << 45, uint64_t(1) << 50);
  SyntheticData data(1);
  for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), {7}})
    EXPECT_THROW(
        runOnHost({.program = program, .stages = makeExactStage, .data = data},
                  {.onReady = [](const HostResources &) { ADD_FAILURE(); }},
                  seed),
        std::invalid_argument);
}

TEST(RunOnHost, RefusesWhatARunCannotHave) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = 0;
  run.gatherGradients = true;
  EXPECT_THROW(runOnHost(run, {}), std::invalid_argument) << "of which step?";
  run.gatherGradients = false;
  run.profile = true;
  EXPECT_THROW(runOnHost(run, {}, 7), std::invalid_argument) << "of what time?";
}

TEST(RunOnHost, OnSimulatedDevicesSavingMayNotHangEither) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  auto failure = [&] {
    try {
      runOnHost(run, {}, 7);
    } catch (const RunFailure &failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  test::retryUntilMessage(
      "simulated devices, seed 7: rank 1 (worker 1) failed: "
      "timed out after {} waiting for progress of its saving",
      200ms, [&](std::chrono::milliseconds timeout) {
        run.timeout = timeout;
        run.onResult = [=](const RunResult &) {
          std::this_thread::sleep_for(test::hangOf(timeout));
        };
        return failure();
      });
  run.timeout = test::kPatience;
  run.onResult = [](const RunResult &) { throw 7; };
  EXPECT_NE(failure().find("failed: an unknown error"), std::string::npos)
      << failure();
}

TEST(RunOnHostDeathTest, SavingThatNeverEndsEndsTheProcess) {
  auto run = [] {
    setEndProcess([](int status) { _exit(status); });
    program::ProgramT program = program::samplePipeline({.workers = 2});
    SyntheticData data(1);
    TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
    // On any machine, this timeout is long enough for all waits before the
    // saving.
    run.timeout = 5s;
    run.onResult = [](const RunResult &) { std::this_thread::sleep_for(1h); };
    runOnHost(run, {}, 7);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1),
              "rank 1 .worker 1. failed: timed out after 5 s waiting for "
              "progress of its saving");
}

TEST(RunOnHost, MakesEachStageBeforeItIsReady) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  auto stages = [](const program::ProgramT &,
                   uint32_t stage) -> std::unique_ptr<Stage> {
    throw std::domain_error("stage " + std::to_string(stage));
  };
  EXPECT_THROW(
      runOnHost({.program = program, .stages = stages, .data = data},
                {.onReady = [](const HostResources &) { ADD_FAILURE(); }}),
      std::domain_error);
}
} // namespace
