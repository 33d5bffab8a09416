//===- TiedTest.cpp - Parameters shared by first and last stage -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Tied.h"
#include "runtime/device/Fold.h"
#include "runtime/model/ExactStage.h"
#include "runtime/model/LearningRate.h"
#include "runtime/train/Run.h"
#include "runtime/train/Sequential.h"
#include "runtime/train/WeightsDigest.h"
#include "test/runtime/program/TiedPrograms.h"
#include "test/runtime/train/ExactTraining.h"

#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;
using test::sequential;

namespace {
using Memory = std::vector<std::byte>;

constexpr uint64_t kTiedBytes = 29; // not a whole number of words

/// A sample in which the first bytes of the first stage's weights are tied to
/// the last bytes of the last stage's weights, or (if `swapped`) the last bytes
/// of the first stage to the first bytes of the last stage. The instructions do
/// not add up their gradients.
program::ProgramT tiedProgram(program::SampleOptions options = {},
                              bool swapped = false) {
  program::ProgramT program = program::samplePipeline(options);
  uint64_t first = program.stages.front().weights_bytes() - kTiedBytes;
  uint64_t last = program.stages.back().weights_bytes() - kTiedBytes;
  program.tied = std::make_unique<program::Tied>(
      swapped ? first : 0, swapped ? 0 : last, kTiedBytes);
  return program;
}

TEST(Tied, IsAtTheEndsOfAPipeline) {
  program::ProgramT program = tiedProgram({.workers = 3});
  Memory first(128), last(128 + 16);
  EXPECT_EQ(tiedOf(program, 0, Bytes(first)).data(), first.data());
  EXPECT_EQ(tiedOf(program, 0, Bytes(first)).size(), kTiedBytes);
  EXPECT_EQ(tiedOf(program, 2, Bytes(last)).data() + kTiedBytes,
            last.data() + last.size());
  EXPECT_TRUE(tiedOf(program, 1, Bytes(first)).empty());
  program.tied.reset();
  EXPECT_TRUE(tiedOf(program, 0, Bytes(first)).empty());
}

TEST(Tied, IsDroppedFromTheLastStage) {
  for (bool swapped : {false, true}) {
    program::ProgramT program = tiedProgram({.workers = 2}, swapped);
    Memory whole(128 + 136);
    for (size_t i = 0; i < whole.size(); ++i)
      whole[i] = std::byte(i);
    Memory dropped = whole;
    dropTiedCopy(program, dropped);
    auto rest = whole.begin() + (swapped ? 128 + 29 : 128);
    Memory expected(whole.begin(), whole.begin() + 128);
    expected.insert(expected.end(), rest, rest + 136 - 29);
    EXPECT_EQ(dropped, expected);
    program.tied.reset();
    dropped = whole;
    dropTiedCopy(program, dropped);
    EXPECT_EQ(dropped, whole);
  }
}

/// Trains two stages without instructions, on one micro-batch per step. If
/// `reduces`, adds up the gradients of the tied parameters.
struct ByHand {
  ByHand(const program::ProgramT &program, bool reduces = true)
      : program(program) {
    for (uint32_t s = 0; s < 2; ++s) {
      stages[s] = makeExactStage(program, s);
      weights[s].resize(program.stages[s].weights_bytes());
      state[s].resize(program.stages[s].optimizer_bytes());
      stages[s]->initialize(weights[s], state[s]);
    }
    for (uint64_t step = 0; step < 3; ++step)
      train(step, reduces);
  }

  void train(uint64_t step, bool reduces) {
    SyntheticData data(program.seed);
    Memory tokens(32), labels(32), activation(64), incoming(64), loss(8);
    data.load(program::ValueKind::Tokens, {step, 0}, tokens);
    data.load(program::ValueKind::Labels, {step, 0}, labels);
    for (size_t s = 0; s < 2; ++s)
      gradient[s].assign(weights[s].size(), std::byte(0));
    auto first =
        stages[0]->forward({step, 0}, tokens, {}, weights[0], activation);
    auto last =
        stages[1]->forward({step, 0}, activation, labels, weights[1], loss);
    stages[1]->backward({step, 0}, std::move(last), loss, weights[1],
                        gradient[1], incoming);
    stages[0]->backward({step, 0}, std::move(first), incoming, weights[0],
                        gradient[0], {});
    if (reduces) {
      std::byte *first = gradient[0].data() + program.tied->first_offset();
      std::byte *last = gradient[1].data() + program.tied->last_offset();
      const std::byte *both[] = {first, last};
      fold(ElementType::UInt64, both, first, kTiedBytes);
      std::copy_n(first, kTiedBytes, last);
    }
    for (size_t s = 0; s < 2; ++s)
      stages[s]->optimizerStep(
          {step, learningRateAt(*program.optimizer, 1, step), 1}, gradient[s],
          weights[s], state[s]);
  }

  /// The model's weights or gradients: the bytes of both stages, with the tied
  /// parameters only once.
  Memory once(const Memory (&parts)[2]) const {
    Memory whole = parts[0];
    whole.insert(whole.end(), parts[1].begin(), parts[1].end());
    dropTiedCopy(program, whole);
    return whole;
  }

  const program::ProgramT &program;
  std::unique_ptr<Stage> stages[2];
  Memory weights[2], state[2], gradient[2];
};

TEST(TiedSequential, EqualsStagesThatAreCalledDirectly) {
  for (bool swapped : {false, true}) {
    program::ProgramT program =
        tiedProgram({.workers = 2, .microBatches = 1}, swapped);
    ByHand right(program), unreduced(program, /*reduces=*/false);
    Memory first = right.weights[0], last = right.weights[1];
    EXPECT_TRUE(std::ranges::equal(tiedOf(program, 0, Bytes(first)),
                                   tiedOf(program, 1, Bytes(last))));
    SequentialResult result = sequential(program, 3);
    EXPECT_EQ(result.weights, right.once(right.weights));
    EXPECT_EQ(result.gradients, right.once(right.gradient));
    EXPECT_NE(result.weights, unreduced.once(unreduced.weights));
    // Without the tie, the losses also change.
    program.tied.reset();
    EXPECT_NE(sequential(program, 3).losses.back().sum,
              result.losses.back().sum);
  }
}

/// A single stage that is the whole model. It keeps the sizes of its memory.
struct WholeModel final : Stage {
  explicit WholeModel(Memory gradient) : gradient(std::move(gradient)) {}
  ElementType weightType() const override { return ElementType::UInt64; }
  ElementType lossType() const override { return ElementType::UInt64; }
  void initialize(Bytes weights, Bytes optimizerState) override {
    weightsBytes = weights.size();
    stateBytes = optimizerState.size();
  }
  std::unique_ptr<Stash> forward(MicroBatch, ConstBytes, ConstBytes, ConstBytes,
                                 Bytes, ForwardMode) override {
    return nullptr;
  }
  void backward(MicroBatch, std::unique_ptr<Stash>, Bytes, ConstBytes,
                Bytes weightGradient, Bytes, WgradMode) override {
    ASSERT_EQ(weightGradient.size(), gradient.size());
    std::ranges::copy(gradient, weightGradient.begin());
  }
  std::unique_ptr<Stash> inputGradient(MicroBatch, std::unique_ptr<Stash>,
                                       Bytes, ConstBytes, Bytes) override {
    return nullptr;
  }
  void weightGradient(MicroBatch, std::unique_ptr<Stash>, ConstBytes, Bytes,
                      WgradMode) override {}
  void squaredNorm(ConstBytes, Bytes) override {}
  void optimizerStep(const Update &, ConstBytes gradientSum, Bytes, Bytes,
                     Bytes, ConstBytes) override {
    EXPECT_TRUE(std::ranges::equal(gradientSum, gradient));
  }

  Memory gradient;
  size_t weightsBytes = 0, stateBytes = 0;
};

TEST(TiedSequential, OneStageHoldsThemOnce) {
  program::ProgramT program = tiedProgram({.workers = 3, .microBatches = 1});
  const size_t bytes = 128 + 136 + 144 - kTiedBytes;
  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<WholeModel>(Memory(bytes, std::byte(3))));
  SyntheticData data(1);
  SequentialResult result = trainSequentially(program, stages, data, 1);
  auto &whole = static_cast<WholeModel &>(*stages[0]);
  EXPECT_EQ(whole.weightsBytes, bytes);
  EXPECT_EQ(whole.stateBytes, 2 * bytes);
  EXPECT_EQ(result.weights.size(), bytes);
  // The gradients are the stage's own gradients: a single stage has no second
  // copy to add.
  EXPECT_EQ(result.gradients, whole.gradient);
}

/// The results of a pipelined run of `steps` steps: weights, gradients and a
/// digest.
RunResult gather(const program::ProgramT &program, uint64_t steps) {
  SyntheticData data(program.seed);
  TrainingRun run{.program = program, .stages = makeExactStage, .data = data};
  run.steps = steps;
  run.timeout = run.patience = std::chrono::seconds(30);
  run.gatherWeights = run.checkReplicas = run.digestWeights = true;
  run.gatherGradients = steps > 0;
  RunResult gathered;
  run.onResult = [&](const RunResult &result) { gathered = result; };
  runInProcess(run);
  return gathered;
}

TEST(TiedGather, HasThemOnce) {
  for (bool bidirectional : {false, true}) {
    program::ProgramT program = tiedProgram(
        {.bidirectional = bidirectional, .dataParallel = 2}, bidirectional);
    EXPECT_EQ(gather(program, 0).weights, sequential(program, 0).weights);
  }
}

TEST(TiedRun, EqualsTheSequentialRun) {
  for (uint32_t workers : {2, 3, 4})
    for (bool bidirectional : {false, true})
      for (uint32_t copies : {1, 2}) {
        program::ProgramT program =
            program::sampleTied({.workers = workers,
                                 .bidirectional = bidirectional,
                                 .splitBackward = copies == 2,
                                 .dataParallel = copies},
                                kTiedBytes, /*swapped=*/workers == 3);
        SequentialResult expected = sequential(program, 3);
        RunResult result = gather(program, 3);
        EXPECT_EQ(result.weights, expected.weights);
        EXPECT_EQ(result.gradients, expected.gradients);
        // The digest is of the model's weights, with the tied parameters once.
        EXPECT_EQ(result.digest, digestOfWeights(program, expected.weights));
        expected.weights[kTiedBytes + 1] ^= std::byte(1);
        EXPECT_NE(result.digest, digestOfWeights(program, expected.weights));
      }
}

TEST(TiedCheckReplicas, ComparesFirstAndLastStage) {
  // All replicas of a stage are equal, but nothing adds up the tied gradients
  // of the first and the last stage.
  program::ProgramT program = tiedProgram();
  try {
    gather(program, 1);
    FAIL() << "different copies passed";
  } catch (const RunFailure &failure) {
    EXPECT_NE(
        std::string(failure.what())
            .find("expected bit-identical replicas, but the tied parameters of "
                  "stage 3 of pipeline 0 at rank 3 differ from those of stage "
                  "0 of pipeline 0 at rank 0"),
        std::string::npos)
        << failure.what();
  }
  program.tied.reset();
  EXPECT_NO_THROW(gather(program, 1));
}
} // namespace
