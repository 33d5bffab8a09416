//===- RunTest.cpp - Runs that fail ---------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Run.h"

#include "runtime/model/ExactStage.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/program/SamplePrograms.h"
#include "test/runtime/train/Failures.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera;
using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Synthetic data. `load` first calls a function of the test.
class Data final : public DataSource {
public:
  explicit Data(std::function<void(program::ValueKind, MicroBatch)> before)
      : before(std::move(before)) {}
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    before(kind, microBatch);
    SyntheticData(1).load(kind, microBatch, output);
  }

private:
  std::function<void(program::ValueKind, MicroBatch)> before;
};

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

/// A stage whose losses are sums.
class Summing final : public Stage {
public:
  explicit Summing(std::unique_ptr<Stage> stage) : stage(std::move(stage)) {}

  bool needsLossWeights() const override { return true; }
  ElementType weightType() const override { return stage->weightType(); }
  ElementType lossType() const override { return stage->lossType(); }
  void initialize(Bytes, Bytes) override {}
  std::unique_ptr<Stash> forward(MicroBatch, ConstBytes, ConstBytes, ConstBytes,
                                 Bytes, ForwardMode) override {
    return nullptr;
  }
  void backward(MicroBatch, std::unique_ptr<Stash>, Bytes, ConstBytes, Bytes,
                Bytes, WgradMode) override {}
  std::unique_ptr<Stash> inputGradient(MicroBatch, std::unique_ptr<Stash>,
                                       Bytes, ConstBytes, Bytes) override {
    return nullptr;
  }
  void weightGradient(MicroBatch, std::unique_ptr<Stash>, ConstBytes, Bytes,
                      WgradMode) override {}
  void squaredNorm(ConstBytes, Bytes) override {}
  void optimizerStep(const Update &, ConstBytes, Bytes, Bytes, Bytes,
                     ConstBytes) override {}

private:
  const std::unique_ptr<Stage> stage;
};

/// Synthetic data that say how many labels count.
class Weighed final : public DataSource {
public:
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override {
    SyntheticData(1).load(kind, microBatch, output);
  }
  double lossWeight(MicroBatch) override { return 2; }
  bool weighsLosses() const override { return true; }
};

// Without weights, a sum would silently be divided by the number of
// micro-batches.
TEST(Run, ALossThatIsASumNeedsWeights) {
  const program::ProgramT program = program::samplePipeline();
  SyntheticData plain(1);
  Weighed weighed;
  const StageFactory sums = [](const program::ProgramT &whole, uint32_t stage) {
    return std::make_unique<Summing>(makeExactStage(whole, stage));
  };
  auto check = [&](const StageFactory &stages, DataSource &data,
                   DataSource *heldOut) {
    TrainingRun run{.program = program, .stages = stages, .data = data};
    run.evaluation.data = heldOut;
    checkRun(run);
  };
  EXPECT_NO_THROW(check(makeExactStage, plain, &plain));
  EXPECT_NO_THROW(check(sums, weighed, nullptr));
  EXPECT_NO_THROW(check(sums, weighed, &weighed));
  EXPECT_THROW(check(sums, plain, nullptr), std::invalid_argument);
  EXPECT_THROW(check(sums, weighed, &plain), std::invalid_argument);
}

TEST(Run, AFailureOfOneRankEndsAllAndIsReported) {
  program::ProgramT program = program::samplePipeline();
  test::retryUntilSuccess(
      1s, [&](std::chrono::milliseconds pause) -> std::string {
        // Only worker 3 loads labels.
        Data data([=](program::ValueKind kind, MicroBatch microBatch) {
          if (kind == program::ValueKind::Labels && microBatch.step == 1 &&
              microBatch.index == 2) {
            // Meanwhile the other ranks reach their waits.
            std::this_thread::sleep_for(pause);
            throw std::runtime_error("the disk is gone");
          }
        });
        TrainingRun run{
            .program = program, .stages = makeExactStage, .data = data};
        run.steps = 5;
        const std::string report = test::failureOf(run);
        for (const char *part :
             {"rank 3 (worker 3) failed: the disk is gone",
              "rank 3 (worker 3): step 2, instruction ",
              "load labels pipeline 0 stage 3 micro-batch 2, from "
              "sample.mlir:4:3; there for ",
              "rank 0 (worker 0): step 2, instruction ",
              "rank 1 (worker 1): step 2, instruction ",
              "rank 2 (worker 2): step 2, instruction ", "; waiting for rank "})
          if (report.find(part) == std::string::npos)
            return report + "\nlacks " + part;
        return "";
      });
}

// Rank 0 loads slowly, so rank 1 waits about half of the time of both. On a
// busy machine, ranks also wait for processors. So the test tries slower loads,
// too.
TEST(Run, TellsWhatItsRanksUsed) {
  const program::ProgramT program = program::samplePipeline({.workers = 2});
  test::retryUntilSuccess(2ms, [&](std::chrono::milliseconds load) {
    Data data([=](program::ValueKind kind, MicroBatch) {
      if (kind == program::ValueKind::Tokens)
        std::this_thread::sleep_for(load);
    });
    TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
    run.steps = 4;
    std::vector<StepUse> uses;
    run.onStep = [&](const StepEvent &event) { uses.push_back(event.use); };
    runInProcess(run);
    EXPECT_EQ(uses.size(), 4u);
    std::string wrong;
    // When the root ends the first step, rank 0 may still be in it.
    for (const StepUse &use : std::span(uses).subspan(1)) {
      EXPECT_EQ(use.measured, 2u);
      EXPECT_GT(use.residentBytes, 1u << 20);
      EXPECT_EQ(use.deviceBytes, 0u);
      if (use.waiting < 0.2 || use.waiting > 0.9)
        wrong += "expected a share of waiting from 0.2 to 0.9, got " +
                 std::to_string(use.waiting) + "\n";
    }
    return wrong;
  });
}

TEST(Run, AWaitTimesOut) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  std::string report = test::retryUntilMessage(
      "rank 1 (worker 1) failed: timed out after {} waiting for rank 0 to send",
      200ms, [&](std::chrono::milliseconds timeout) {
        Data data([=](program::ValueKind kind, MicroBatch microBatch) {
          if (kind == program::ValueKind::Tokens && microBatch.index == 3)
            std::this_thread::sleep_for(test::hangOf(timeout));
        });
        TrainingRun run{
            .program = program, .stages = makeExactStage, .data = data};
        run.timeout = timeout;
        return test::failureOf(run);
      });
  expectContains(report, "rank 0 (worker 0): step 1, instruction ");
  expectContains(report, "load tokens pipeline 0 stage 0 micro-batch 3");
}

TEST(Run, MeetingsTimeOut) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  std::string report = test::retryUntilMessage(
      "failed: timed out after {} waiting for all ranks to start", 200ms,
      [&](std::chrono::milliseconds timeout) {
        std::atomic<bool> first = true;
        run.onThread = [&] {
          if (first.exchange(false))
            std::this_thread::sleep_for(test::hangOf(timeout));
        };
        run.timeout = timeout;
        return test::failureOf(run);
      });
  expectContains(report, ": starting for ");

  run.onThread = nullptr;
  test::retryUntilMessage(
      "rank 0 (worker 0) failed: timed out after {} waiting for "
      "all ranks to end their last step",
      200ms, [&](std::chrono::milliseconds timeout) {
        // Only the root rank calls onStep.
        run.onStep = [=](const StepEvent &) {
          std::this_thread::sleep_for(test::hangOf(timeout));
        };
        run.timeout = timeout;
        return test::failureOf(run);
      });
}

TEST(Run, ARankThatComputesForEverTimesOut) {
  // There is only one rank, so no other rank can notice that it does not
  // advance.
  program::ProgramT program = program::samplePipeline({.workers = 1});
  std::string report = test::retryUntilMessage(
      "rank 0 (worker 0) failed: timed out after {} waiting for rank 0 to "
      "advance",
      200ms, [&](std::chrono::milliseconds timeout) {
        Data data([=](program::ValueKind kind, MicroBatch microBatch) {
          if (kind == program::ValueKind::Tokens && microBatch.index == 1)
            std::this_thread::sleep_for(test::hangOf(timeout));
        });
        TrainingRun run{
            .program = program, .stages = makeExactStage, .data = data};
        run.timeout = timeout;
        return test::failureOf(run);
      });
  expectContains(report, "load tokens pipeline 0 stage 0 micro-batch 1");
}

TEST(Run, TheRootMaySaveForLong) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  test::retryUntilSuccess(300ms, [&](std::chrono::milliseconds timeout) {
    run.timeout = timeout;
    run.onResult = [=](const RunResult &) {
      auto end = std::chrono::steady_clock::now() + 3 * timeout;
      while (std::chrono::steady_clock::now() < end)
        ;
    };
    return test::failureOf(run);
  });
}

TEST(Run, TheRootMayNotHangWhileItSaves) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  std::string report = test::retryUntilMessage(
      "rank 1 (worker 1) failed: timed out after {} waiting "
      "for progress of its saving",
      200ms, [&](std::chrono::milliseconds timeout) {
        run.timeout = timeout;
        // Let the root sleep: unlike a wait for a slow device, this must time
        // out.
        run.onResult = [=](const RunResult &) {
          std::this_thread::sleep_for(test::hangOf(timeout));
        };
        return test::failureOf(run);
      });
  expectContains(report, "rank 1 (worker 1): saving for ");
}

TEST(Run, WhatTheRootThrowsFailsTheRun) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.onResult = [](const RunResult &) {
    throw std::runtime_error("no space left");
  };
  std::string report = test::failureOf(run);
  expectContains(report, "rank 1 (worker 1) failed: no space left");
  expectContains(report, "rank 0 (worker 0): past its last step");
  run.onResult = [](const RunResult &) { throw 7; };
  expectContains(test::failureOf(run),
                 "rank 1 (worker 1) failed: an unknown error");
}

TEST(Run, MayHaveTheLongestTimeoutThereIs) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.timeout = std::chrono::milliseconds::max();
  run.onStep = [](const StepEvent &) { std::this_thread::sleep_for(200ms); };
  run.onResult = [](const RunResult &) { std::this_thread::sleep_for(300ms); };
  EXPECT_EQ(test::failureOf(run), "");
}

TEST(RootOf, IsTheLowestRankThatHasTheLoss) {
  EXPECT_EQ(rootOf(program::samplePipeline()), 3u);
  EXPECT_EQ(rootOf(program::samplePipeline({.bidirectional = true})), 0u);
}
} // namespace
