//===- ExactStageTest.cpp - Stages in integer arithmetic ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/ExactStage.h"

#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
using Words = std::vector<uint64_t>;

ConstBytes in(const Words &words) { return std::as_bytes(std::span(words)); }
Bytes out(Words &words) { return std::as_writable_bytes(std::span(words)); }

/// The operands of one forward and backward on a middle stage.
struct Operands {
  MicroBatch microBatch{3, 5};
  Words input{1, 2, 3};
  Words weights{10, 20};
  Words outputGradient{7, 8, 9};

  struct Results {
    Words output, inputGradient, weightGradient;
    bool operator==(const Results &) const = default;
  };

  Results run(bool split = false, uint32_t number = 1) const {
    auto stage = makeExactStage(program::samplePipeline(), number);
    Results results{Words(3), Words(3), Words{100, 200}};
    auto stash = stage->forward(microBatch, in(input), {}, in(weights),
                                out(results.output));
    if (split) {
      stash =
          stage->inputGradient(microBatch, std::move(stash), in(outputGradient),
                               in(weights), out(results.inputGradient));
      stage->weightGradient(microBatch, std::move(stash), in(weights),
                            out(results.weightGradient));
    } else {
      stage->backward(microBatch, std::move(stash), in(outputGradient),
                      in(weights), out(results.weightGradient),
                      out(results.inputGradient));
    }
    return results;
  }
};

TEST(ExactStage, IsAFunctionOfItsOperands) {
  EXPECT_EQ(Operands().run(), Operands().run());
  EXPECT_EQ(Operands().run(), Operands().run(true)) << "split backward";
}

TEST(ExactStage, EveryOperandChangesEveryResultBehindIt) {
  Operands::Results right = Operands().run();
  auto expectOther = [&](const Operands &operands, bool forwardToo,
                         const char *what) {
    Operands::Results other = operands.run();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(other.output[i] != right.output[i], forwardToo) << what;
      EXPECT_NE(other.inputGradient[i], right.inputGradient[i]) << what;
    }
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NE(other.weightGradient[i], right.weightGradient[i]) << what;
  };
  Operands operands;
  operands.input[2] ^= 1;
  expectOther(operands, true, "input");
  operands = {};
  operands.weights[0] ^= uint64_t(1) << 63;
  expectOther(operands, true, "weights");
  operands = {};
  std::swap(operands.input[0], operands.input[1]);
  expectOther(operands, true, "order of words");
  operands = {};
  operands.microBatch.index = 6;
  expectOther(operands, true, "micro-batch");
  operands = {};
  operands.microBatch.step = 4;
  expectOther(operands, true, "step");
  operands = {};
  operands.microBatch = {3, 5, 0, 2};
  expectOther(operands, true, "part");
  operands = {};
  operands.outputGradient[1] ^= 4;
  expectOther(operands, false, "output gradient");
  EXPECT_NE(Operands().run(false, 2).output, right.output) << "stage";
}

TEST(ExactStage, PartsOfAMicroBatchDiffer) {
  Operands first, second, ofFour;
  first.microBatch = {3, 5, 0, 2};
  second.microBatch = {3, 5, 1, 2};
  ofFour.microBatch = {3, 5, 1, 4};
  EXPECT_NE(first.run().output, second.run().output);
  EXPECT_NE(first.run().weightGradient, second.run().weightGradient);
  EXPECT_NE(second.run().output, ofFour.run().output);
  EXPECT_EQ(second.run(), second.run(true)) << "split backward";
}

TEST(ExactStage, ARecomputedStashIsTheSame) {
  Operands operands;
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Operands::Results results{Words(3), Words(3), Words{100, 200}};
  EXPECT_EQ(stage->forward(operands.microBatch, in(operands.input), {},
                           in(operands.weights), out(results.output),
                           Wanted::Output),
            nullptr);
  auto stash = stage->forward(operands.microBatch, in(operands.input), {},
                              in(operands.weights), {}, Wanted::Stash);
  stage->backward(operands.microBatch, std::move(stash),
                  in(operands.outputGradient), in(operands.weights),
                  out(results.weightGradient), out(results.inputGradient));
  EXPECT_EQ(results, operands.run());
}

TEST(ExactStage, BackwardReadsTheWeightsItIsGiven) {
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words input{1}, weights{2}, newer{3}, output(1), gradient(1), incoming{4};
  auto backward = [&](const Words &version) {
    Words sum{0};
    auto stash = stage->forward({}, in(input), {}, in(weights), out(output));
    stage->backward({}, std::move(stash), in(incoming), in(version), out(sum),
                    out(gradient));
    return sum;
  };
  EXPECT_NE(backward(weights), backward(newer));
}

TEST(ExactStage, GradientsAddUp) {
  Operands operands;
  Operands::Results once = operands.run();
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words sum{100, 200}, output(3), gradient(3);
  for (int i = 0; i < 2; ++i)
    stage->backward(operands.microBatch,
                    stage->forward(operands.microBatch, in(operands.input), {},
                                   in(operands.weights), out(output)),
                    in(operands.outputGradient), in(operands.weights), out(sum),
                    out(gradient));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(sum[i] - once.weightGradient[i],
              once.weightGradient[i] - (i ? 200 : 100));
}

TEST(ExactStage, StashesAreCheckedForWhatTheyAre) {
  auto stage = makeExactStage(program::samplePipeline(), 1);
  Words words{1}, more{1};
  EXPECT_THROW(
      stage->backward({}, nullptr, in(words), in(words), out(more), out(more)),
      std::logic_error);
  EXPECT_THROW(stage->weightGradient(
                   {}, stage->forward({}, in(words), {}, in(words), out(more)),
                   in(words), out(more)),
               std::logic_error);
}

TEST(ExactStage, StartAndStepDependOnStageAndSeed) {
  program::ProgramT program = program::samplePipeline();
  auto start = [&](uint32_t stage) {
    Words weights(2), state(3);
    makeExactStage(program, stage)->initialize(out(weights), out(state));
    return std::pair(weights, state);
  };
  EXPECT_EQ(start(0), start(0));
  EXPECT_NE(start(0).first, start(1).first);
  auto before = start(0);
  auto step = [&](Words gradient, uint64_t number, double scale) {
    auto [weights, state] = before;
    makeExactStage(program, 0)
        ->optimizerStep(number, scale, in(gradient), out(weights), out(state));
    return std::pair(weights, state);
  };
  auto right = step({1, 2}, 0, 0.25);
  EXPECT_NE(right, before);
  EXPECT_NE(step({1, 3}, 0, 0.25), right);
  EXPECT_NE(step({1, 2}, 1, 0.25), right);
  EXPECT_NE(step({1, 2}, 0, 0.125), right);
  program.seed += 1;
  EXPECT_NE(start(0).first, before.first);
}

TEST(ExactStage, BuffersMayEndInAnIncompleteWord) {
  auto stage = makeExactStage(program::samplePipeline(), 0);
  std::vector<std::byte> weights(13), state(3);
  stage->initialize(weights, state);
  std::vector<std::byte> output(5), gradient(13), tokens(6);
  auto stash = stage->forward({}, tokens, {}, weights, output);
  stage->backward({}, std::move(stash), output, weights, gradient, {});
  EXPECT_NE(std::vector(gradient.begin() + 8, gradient.end()),
            std::vector<std::byte>(5));
}

TEST(SyntheticData, IsAFunctionOfKindMicroBatchAndSeed) {
  auto load = [](uint64_t seed, program::ValueKind kind, MicroBatch m) {
    Words words(4);
    SyntheticData(seed).load(kind, m, out(words));
    return words;
  };
  Words right = load(1, program::ValueKind::Tokens, {2, 3});
  EXPECT_EQ(right, load(1, program::ValueKind::Tokens, {2, 3}));
  EXPECT_NE(right, load(2, program::ValueKind::Tokens, {2, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Labels, {2, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Tokens, {3, 3}));
  EXPECT_NE(right, load(1, program::ValueKind::Tokens, {2, 4}));
}
} // namespace
