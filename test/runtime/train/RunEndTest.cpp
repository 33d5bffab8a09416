//===- RunEndTest.cpp - Diverging runs keep finite weights ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/RunEnd.h"
#include "runtime/model/ExactStage.h"
#include "runtime/train/RunOnHost.h"
#include "runtime/train/RunSequential.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::span<float> floats(Bytes bytes) {
  return {reinterpret_cast<float *>(bytes.data()),
          bytes.size() / sizeof(float)};
}
std::span<const float> floats(ConstBytes bytes) {
  return {reinterpret_cast<const float *>(bytes.data()),
          bytes.size() / sizeof(float)};
}

/// Describes values that are not finite from step `step` on.
struct Fault {
  uint64_t step = UINT64_MAX;
  std::optional<double> loss;     ///< the loss of every micro-batch
  std::set<uint32_t> stages = {}; ///< stages whose gradients are NaN
};

/// A stage that adds 1 to each of its weights in each update. `fault` makes its
/// losses or gradients not finite.
class Counting final : public Stage {
public:
  Counting(const program::ProgramT &program, uint32_t stage, const Fault &fault)
      : isLast(stage + 1 == program.stages.size()),
        isBad(fault.stages.contains(stage)), fault(fault) {}

  ElementType weightType() const override { return ElementType::Float32; }
  ElementType lossType() const override { return ElementType::Float64; }
  void initialize(Bytes weights, Bytes state) override {
    std::ranges::fill(floats(weights), 0.f);
    std::ranges::fill(state, std::byte());
  }
  std::unique_ptr<Stash> forward(MicroBatch microBatch, ConstBytes, ConstBytes,
                                 ConstBytes, Bytes output,
                                 ForwardMode mode) override {
    std::ranges::fill(output, std::byte());
    if (isLast && !output.empty()) {
      const double loss =
          fault.loss && microBatch.step >= fault.step ? *fault.loss : 1;
      std::memcpy(output.data(), &loss, sizeof loss);
    }
    return makesStash(mode) ? std::make_unique<Stash>() : nullptr;
  }
  void backward(MicroBatch microBatch, std::unique_ptr<Stash>, Bytes,
                ConstBytes, Bytes weightGradient, Bytes inputGradient,
                WgradMode mode) override {
    std::ranges::fill(inputGradient, std::byte());
    for (float &each : floats(weightGradient))
      each = (mode == WgradMode::Overwrite ? 0 : each) + 1;
    // Make only one element of the gradient of one micro-batch not finite.
    if (isBad && microBatch.step >= fault.step && microBatch.index == 1)
      floats(weightGradient).back() = kNaN;
  }
  std::unique_ptr<Stash> inputGradient(MicroBatch, std::unique_ptr<Stash>,
                                       Bytes, ConstBytes, Bytes) override {
    throw std::logic_error("no split backward here");
  }
  void weightGradient(MicroBatch, std::unique_ptr<Stash>, ConstBytes, Bytes,
                      WgradMode) override {
    throw std::logic_error("no split backward here");
  }
  void squaredNorm(ConstBytes, Bytes) override {
    throw std::logic_error("no clipping here");
  }
  void optimizerStep(const Update &, ConstBytes gradientSum, Bytes weights,
                     Bytes, Bytes halted, ConstBytes) override {
    int32_t flag = 0;
    ASSERT_EQ(halted.size(), sizeof flag);
    std::memcpy(&flag, halted.data(), sizeof flag);
    for (float each : floats(gradientSum))
      flag |= !std::isfinite(each);
    std::memcpy(halted.data(), &flag, sizeof flag);
    if (!flag)
      for (float &each : floats(weights))
        each += 1;
  }

private:
  const bool isLast, isBad;
  const Fault &fault;
};

enum class How { Threads, Simulated, Sequential };

RunResult resultWithFault(const program::ProgramT &program, const Fault &fault,
                          How how, uint64_t steps = 50) {
  SyntheticData data(1);
  RunResult found;
  TrainingRun run{.program = program,
                  .stages =
                      [&](const program::ProgramT &whole, uint32_t stage) {
                        return std::make_unique<Counting>(whole, stage, fault);
                      },
                  .data = data};
  run.steps = steps;
  run.gatherWeights = run.keepFinite = run.checkReplicas = true;
  run.onResult = [&](const RunResult &result) { found = result; };
  bool isEvaluated = false;
  run.evaluation = {.data = &data, .passes = 1};
  run.evaluation.onResult = [&](uint64_t, const EvaluationResult &) {
    isEvaluated = true;
  };
  if (how == How::Sequential)
    runSequential(run, {}, static_cast<uint32_t>(program.stages.size()));
  else if (how == How::Simulated)
    runOnHost(run, {}, /*seed=*/3);
  else
    runOnHost(run, {});
  EXPECT_EQ(isEvaluated, found.endedRegularly());
  return found;
}

/// The number of updates that each stage's weights contain.
std::vector<uint64_t> updatesIn(const program::ProgramT &program,
                                const RunResult &result) {
  std::vector<uint64_t> updates;
  size_t at = 0;
  for (const program::Stage &stage : program.stages) {
    std::span<const float> own =
        floats(ConstBytes(result.weights).subspan(at, stage.weights_bytes()));
    for (float each : own)
      EXPECT_EQ(each, own[0]);
    updates.push_back(static_cast<uint64_t>(own[0]));
    at += stage.weights_bytes();
  }
  return updates;
}

program::ProgramT samplePipeline() {
  return program::samplePipeline({.bidirectional = true, .dataParallel = 2});
}

class RunEnd : public testing::TestWithParam<How> {};

TEST_P(RunEnd, ALossThatIsNotFiniteStopsTheRun) {
  const program::ProgramT program = samplePipeline();
  for (double loss : {double(kNaN), kInfinity, -kInfinity}) {
    const Fault fault{.step = 5, .loss = loss};
    const RunResult result = resultWithFault(program, fault, GetParam());
    ASSERT_TRUE(result.divergence);
    EXPECT_EQ(result.divergence->step, 5u);
    ASSERT_TRUE(result.divergence->loss);
    EXPECT_FALSE(std::isfinite(*result.divergence->loss));
    EXPECT_TRUE(result.divergence->stages.empty());
    // All ranks have stopped after the same step, soon after the fault. No rank
    // was aborted.
    EXPECT_GE(result.steps, 6u);
    EXPECT_LE(result.steps, 8u);
    EXPECT_EQ(result.weightsAfter, std::vector<uint64_t>(4, result.steps));
    EXPECT_EQ(updatesIn(program, result), result.weightsAfter);
  }
}

TEST_P(RunEnd, ALossAndAllGradientsLeaveTheWeightsBeforeThem) {
  const program::ProgramT program = samplePipeline();
  const Fault fault{.step = 5, .loss = kNaN, .stages = {0, 1, 2, 3}};
  const RunResult result = resultWithFault(program, fault, GetParam());
  ASSERT_TRUE(result.divergence && result.divergence->loss);
  EXPECT_EQ(result.divergence->step, 5u);
  EXPECT_EQ(result.weightsAfter, std::vector<uint64_t>(4, 5));
  EXPECT_EQ(updatesIn(program, result), result.weightsAfter);
}

TEST_P(RunEnd, GradientsThatAreNotFiniteStopTheRunToo) {
  const program::ProgramT program = samplePipeline();
  const Fault fault{.step = 5, .loss = {}, .stages = {1, 2}};
  const RunResult result = resultWithFault(program, fault, GetParam());
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->step, 5u);
  EXPECT_FALSE(result.divergence->loss);
  EXPECT_EQ(result.divergence->stages, (std::vector<uint32_t>{1, 2}));
  EXPECT_GE(result.steps, 6u);
  EXPECT_LE(result.steps, 8u);
  EXPECT_EQ(result.weightsAfter,
            (std::vector<uint64_t>{result.steps, 5, 5, result.steps}));
  EXPECT_EQ(updatesIn(program, result), result.weightsAfter);
}

TEST_P(RunEnd, GradientsOfTheLastStepCount) {
  const program::ProgramT program = samplePipeline();
  const Fault fault{.step = 9, .loss = {}, .stages = {0}};
  const RunResult result = resultWithFault(program, fault, GetParam(), 10);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.steps, 10u);
  EXPECT_EQ(result.weightsAfter, (std::vector<uint64_t>{9, 10, 10, 10}));
  EXPECT_EQ(updatesIn(program, result), result.weightsAfter);
}

TEST_P(RunEnd, AFiniteRunIsWhole) {
  const program::ProgramT program = samplePipeline();
  const RunResult result = resultWithFault(program, {}, GetParam(), 10);
  EXPECT_TRUE(result.endedRegularly());
  EXPECT_EQ(result.stoppedBy, 0);
  EXPECT_EQ(result.weightsAfter, std::vector<uint64_t>(4, 10));
  EXPECT_EQ(updatesIn(program, result), result.weightsAfter);
}

// Without a flush, a step starts before the updates of the previous step. The
// weights must nevertheless stay finite.
TEST_P(RunEnd, WithoutAFlushWeightsStayFinite) {
  const program::ProgramT program =
      program::sampleAsynchronous({}, program::Updates::EachStep);
  const auto stages = static_cast<uint32_t>(program.stages.size());
  const Fault fault{.step = 5, .loss = {}, .stages = {stages - 1}};
  const RunResult result = resultWithFault(program, fault, GetParam());
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->stages, std::vector<uint32_t>{stages - 1});
  EXPECT_LE(result.steps, 10u);
  const std::vector<uint64_t> updates = updatesIn(program, result);
  EXPECT_EQ(updates.back(), 5u);
  EXPECT_LE(result.weightsAfter.back(), 5u);
  EXPECT_GE(updates.front(), 6u);
}

INSTANTIATE_TEST_SUITE_P(Run, RunEnd,
                         testing::Values(How::Threads, How::Simulated,
                                         How::Sequential),
                         [](const auto &how) {
                           return how.param == How::Threads     ? "Threads"
                                  : how.param == How::Simulated ? "Simulated"
                                                                : "Sequential";
                         });
/// Asks a LossWatch after each of the losses of a run that may skip `most`
/// steps. Returns the index of the loss at which the run must stop. -1: none.
int stopsAt(uint64_t most, const std::vector<Loss> &losses,
            std::optional<Divergence> &divergence) {
  const program::ProgramT program = samplePipeline();
  SyntheticData data(1);
  TrainingRun run{.program = program, .stages = {}, .data = data};
  run.keepFinite = true;
  run.skipNonFinite = most;
  LossWatch watch(run);
  for (size_t step = 0; step < losses.size(); ++step)
    if (watch.mustStop(step, losses[step])) {
      divergence = watch.divergence();
      return static_cast<int>(step);
    }
  return -1;
}

// A checkpoint has the weights of a run that a signal ended, so they are not
// gathered in the short time before the process is killed.
TEST(GathersWeightsAtEnd, UnlessASignalEndsARunWithACheckpoint) {
  const program::ProgramT program = program::samplePipeline();
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  RunResult ended{};
  EXPECT_FALSE(gathersWeightsAtEnd(run, ended));
  run.gatherWeights = true;
  for (const bool hasCheckpoints : {false, true}) {
    if (hasCheckpoints)
      run.checkpoints = CheckpointSettings();
    for (const int signal : {0, SIGUSR1, SIGTERM, SIGINT}) {
      ended.stoppedBy = signal;
      const bool mustEnd = signal == SIGTERM || signal == SIGINT;
      ended.divergence.reset();
      EXPECT_EQ(gathersWeightsAtEnd(run, ended), !(hasCheckpoints && mustEnd));
      ended.divergence = Divergence{.step = 3, .loss = {}, .stages = {}};
      EXPECT_TRUE(gathersWeightsAtEnd(run, ended));
    }
  }
}

TEST(LossWatch, SkipsOnlyTheGivenNumberOfSteps) {
  const Loss good{.sum = 0, .mean = 1, .gradientNorm = 1};
  // The gradients are not finite; the loss may be.
  const Loss bad{.sum = 0, .mean = double(kNaN), .gradientNorm = double(kNaN)};
  const Loss badGradients{.sum = 0, .mean = 1, .gradientNorm = kInfinity};
  std::optional<Divergence> why;
  EXPECT_EQ(stopsAt(2, {good, bad, good, badGradients, good}, why), -1);
  EXPECT_EQ(stopsAt(2, {bad, good, badGradients, bad}, why), 3);
  ASSERT_TRUE(why && why->loss);
  EXPECT_EQ(why->step, 3u);
  EXPECT_EQ(why->skipped, 2u);
  EXPECT_EQ(stopsAt(1, {bad, badGradients}, why), 1);
  EXPECT_FALSE(why->loss);
  EXPECT_TRUE(why->stages.empty());
}

TEST(LossWatch, StopsForALossWhoseGradientsAreFinite) {
  const Loss lossAlone{.sum = 0, .mean = kInfinity, .gradientNorm = 1};
  std::optional<Divergence> why;
  EXPECT_EQ(stopsAt(5, {lossAlone}, why), 0);
  EXPECT_EQ(why->skipped, 0u);
}

TEST(LossWatch, SkipsNothingWithoutANorm) {
  std::optional<Divergence> why;
  EXPECT_EQ(stopsAt(5, {Loss{.sum = 0, .mean = double(kNaN)}}, why), 0);
}

} // namespace
