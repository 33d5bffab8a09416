//===- Gpt2StageTest.cpp - Stages of a transformer ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/GraphStage.h"
#include "runtime/model/weights/StageWeights.h"
#include "runtime/random/Philox.h"
#include "runtime/random/Random.h"
#include "test/oracle/Gpt2.h"
#include "test/runtime/model/SmallModel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace chimera::runtime {
namespace {

using namespace test;

// The results of three training steps of two micro-batches each: the losses,
// the final weights, and the gradients of the last step.
struct Trained {
  std::vector<double> losses, weights, gradient;
};
Trained train(const program::ProgramT &program) {
  Line<double> line(program);
  Trained trained;
  for (uint64_t step = 0; step < 3; ++step) {
    for (auto &part : line.parts)
      std::fill(part.gradient.begin(), part.gradient.end(), 0);
    for (uint64_t index : {0, 1}) {
      trained.losses.push_back(line.forward({step, index}));
      line.backward({step, index});
    }
    line.step(step, 0.5);
  }
  trained.weights = line.whole(&Line<double>::Part::weights);
  trained.gradient = line.whole(&Line<double>::Part::gradient);
  return trained;
}

class SplitTest : public testing::TestWithParam<double> {};

// This also holds with dropout: a mask depends on the layer and the
// micro-batch, not on the stage.
TEST_P(SplitTest, partsEqualTheWhole) {
  Sizes sizes{.layers = 3, .dropout = GetParam()};
  Trained whole = train(smallProgram(sizes, {5}));
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (auto split : std::vector<std::vector<uint32_t>>{
           {1, 4}, {2, 3}, {4, 1}, {1, 1, 1, 1, 1}}) {
    Trained parts = train(smallProgram(sizes, split));
    EXPECT_LE(largestDifference(parts.losses, whole.losses), 1e-13);
    EXPECT_LE(largestDifference(parts.weights, whole.weights), 1e-13);
    EXPECT_LE(largestDifference(parts.gradient, whole.gradient), 1e-13);
  }
}
INSTANTIATE_TEST_SUITE_P(Dropout, SplitTest, testing::Values(0.0, 0.3));

TEST(Gpt2StageTest, isDeterministic) {
  program::ProgramT program = smallProgram({.dropout = 0.2}, {2, 2});
  Trained first = train(program), second = train(program);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.weights, second.weights);
}

// Compares the gradients of all stages with central differences of the loss,
// for some elements of every parameter.
TEST_P(SplitTest, gradientIsTheLossesDerivative) {
  program::ProgramT program = smallProgram({.dropout = GetParam()}, {2, 2});
  Line<double> line(program);
  // Change the initial weights, because half of them are zero or one.
  for (auto &part : line.parts)
    for (size_t i = 0; i < part.weights.size(); ++i)
      part.weights[i] += 0.1 * std::sin(static_cast<double>(i));
  const MicroBatch microBatch{3, 5};
  line.forward(microBatch);
  line.backward(microBatch);
  uint32_t first = 0;
  for (size_t s = 0; s < 2; ++s) {
    StageWeights layers(program, first, 2, DevicePlacement());
    first += 2;
    auto &part = line.parts[s];
    for (const StageWeights::Slot &slot : layers.slots())
      for (int64_t k : {int64_t{0}, slot.parameter.elements() / 2,
                        slot.parameter.elements() - 1}) {
        const auto i = static_cast<size_t>(slot.offset + k);
        const double kept = part.weights[i], h = 1e-5;
        part.weights[i] = kept + h;
        const double above = line.forward(microBatch);
        part.weights[i] = kept - h;
        const double below = line.forward(microBatch);
        part.weights[i] = kept;
        EXPECT_NEAR(part.gradient[i], (above - below) / (2 * h), 1e-8)
            << slot.layer << "." << slot.parameter.name << "[" << k << "]";
      }
  }
}

TEST(Gpt2StageTest, gradientsAccumulate) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  line.forward({0, 0});
  line.backward({0, 0});
  std::vector<double> once = line.whole(&Line<double>::Part::gradient);
  line.forward({0, 0});
  line.backward({0, 0});
  std::vector<double> twice = line.whole(&Line<double>::Part::gradient);
  for (double &value : once)
    value *= 2;
  // Products are added to the sum while they are computed. So a product is not
  // rounded before it is added.
  EXPECT_LE(largestDifference(once, twice), 1e-14);
}

TEST(Gpt2StageTest, theFirstGradientOverwritesTheSum) {
  for (bool tied : {false, true})
    for (auto cut : std::vector<std::vector<uint32_t>>{{4}, {1, 3}}) {
      program::ProgramT program = smallProgram({.tied = tied}, cut);
      Line<double> added(program), begun(program);
      begun.fillGradientsWithNaN();
      for (uint64_t index : {0, 1}) {
        added.forward({0, index});
        added.backward({0, index});
        begun.forward({0, index});
        begun.backward({0, index},
                       index == 0 ? WgradMode::Overwrite : WgradMode::Add);
      }
      EXPECT_EQ(begun.whole(&Line<double>::Part::gradient),
                added.whole(&Line<double>::Part::gradient));
    }
}

TEST(Gpt2StageTest, stashesLiveSideBySide) {
  program::ProgramT program = smallProgram({.dropout = 0.2}, {2, 2});
  Line<double> inTurn(program), pipelined(program);
  std::vector<std::unique_ptr<Stash>> first;
  for (uint64_t index : {0, 1}) {
    inTurn.forward({0, index});
    inTurn.backward({0, index});
  }
  pipelined.forward({0, 0});
  for (auto &part : pipelined.parts)
    first.push_back(std::move(part.stash));
  pipelined.forward({0, 1});
  pipelined.backward({0, 1});
  for (size_t s = 0; s < first.size(); ++s)
    pipelined.parts[s].stash = std::move(first[s]);
  pipelined.backward({0, 0});
  EXPECT_LE(largestDifference(inTurn.whole(&Line<double>::Part::gradient),
                              pipelined.whole(&Line<double>::Part::gradient)),
            1e-14);
}

TEST(Gpt2StageTest, leavesTheIncomingGradientAlone) {
  program::ProgramT program = smallProgram({}, {1, 1, 2});
  Line<double> line(program);
  line.forward({0, 0});
  line.backward({0, 0});
  std::vector<double> incoming = line.parts[1].outputGradient;
  line.forward({0, 0});
  line.backward({0, 0});
  EXPECT_EQ(line.parts[1].outputGradient, incoming);
}

// Without dropout, attention uses another kernel. Both kernels must compute the
// same function.
TEST(Gpt2StageTest, attentionsAgree) {
  Sizes sizes{.width = 32, .context = 40};
  double plain = Line<double>(smallProgram(sizes, {4})).forward({0, 0});
  // With this probability, no element is dropped, and the scale is almost one.
  sizes.dropout = 1e-12;
  double keyed = Line<double>(smallProgram(sizes, {4})).forward({0, 0});
  EXPECT_NEAR(plain, keyed, 1e-10);
}

TEST(Gpt2StageTest, dropoutDependsOnStepMicroBatchAndSeed) {
  program::ProgramT program = smallProgram({.dropout = 0.5}, {4});
  std::set<double> losses;
  Line<double> line(program);
  for (MicroBatch microBatch :
       {MicroBatch{0, 0}, MicroBatch{0, 1}, MicroBatch{1, 0}}) {
    double loss = line.forward(microBatch);
    EXPECT_EQ(loss, line.forward(microBatch));
    losses.insert(loss);
  }
  program.seed = 43;
  Line<double> other(program);
  for (size_t i = 0; i < line.parts[0].weights.size(); ++i)
    other.parts[0].weights[i] = line.parts[0].weights[i];
  losses.insert(other.forward({0, 0}));
  EXPECT_EQ(losses.size(), 4u);
}

TEST(Gpt2StageTest, dropsTheDeclaredShare) {

  Sizes sizes{.width = 64, .context = 64, .dropout = 0.25};
  program::ProgramT program = smallProgram(sizes, {1, 3});
  Line<double> line(program);
  std::fill(line.parts[0].weights.begin(), line.parts[0].weights.end(), 0.5);
  line.parts[0].stage->forward({0, 0}, bytesOf(line.tokens), {},
                               bytesOf(line.parts[0].weights),
                               bytesOf(line.parts[0].output));
  const std::vector<double> &output = line.parts[0].output;
  auto kept = std::count(output.begin(), output.end(), 1 / 0.75);
  auto dropped = std::count(output.begin(), output.end(), 0.0);
  EXPECT_EQ(static_cast<size_t>(kept + dropped), output.size());
  EXPECT_NEAR(static_cast<double>(dropped) / output.size(), 0.25, 0.02);
}

// The dropped elements of a sample do not depend on the number of samples in
// its micro-batch.
TEST(Gpt2StageTest, samplesHaveTheirOwnDropout) {
  auto outputOf = [](uint32_t samples, uint64_t index) {
    program::ProgramT program =
        smallProgram({.dropout = 0.5, .microBatchSize = samples}, {1, 3});
    Line<double> line(program);
    auto &part = line.parts[0];
    std::fill(part.weights.begin(), part.weights.end(), 0.5);
    part.stage->forward({3, index}, bytesOf(line.tokens), {},
                        bytesOf(part.weights), bytesOf(part.output));
    return part.output;
  };
  std::vector<double> ofTwo = outputOf(2, 3), ofFour = outputOf(4, 1);
  ASSERT_EQ(ofFour.size(), 2 * ofTwo.size());
  EXPECT_EQ(std::vector(ofFour.begin() + static_cast<int>(ofTwo.size()),
                        ofFour.end()),
            ofTwo);
}

constexpr double kDropout = 0.25;

// For each element, whether dropout keeps it, by the documented formula.
std::vector<bool> documentedMask(const program::ProgramT &program,
                                 uint64_t layer, DropoutSite site,
                                 MicroBatch microBatch, uint64_t samples,
                                 uint64_t elements) {
  uint64_t key = mix({program.seed, 2, layer, site, microBatch.step});
  std::vector<bool> kept;
  for (uint64_t s = 0; s < samples; ++s)
    for (uint64_t e = 0; e < elements; ++e) {
      const uint64_t n = (microBatch.index * samples + s) * elements + e;
      const float number = static_cast<float>(
          philox({static_cast<uint32_t>(n / 4), 0, 0, 0}, key)[n % 4]);
      kept.push_back(number * 0x1p-32f + 0x1p-33f >
                     static_cast<float>(kDropout));
    }
  return kept;
}

// A test of one transformer block. All its parameters are zero, except the
// parameters in `ones`, which are one. The input is zero. So the output is the
// contribution of these parameters to the residual stream.
class MaskTest : public testing::Test {
protected:
  std::vector<double> run(uint32_t layer, std::vector<std::string> ones) {
    program = smallProgram({.dropout = kDropout}, {1, 1, 1, 1});
    Line<double> line(program);
    auto &part = line.parts[layer];
    std::fill(part.weights.begin(), part.weights.end(), 0);
    const StageWeights block(program, layer, 1, DevicePlacement());
    for (const StageWeights::Slot &slot : block.slots())
      if (std::count(ones.begin(), ones.end(), slot.parameter.name))
        for (int64_t i = 0; i < slot.parameter.elements(); ++i)
          part.weights[static_cast<size_t>(slot.offset + i)] = 1;
    std::vector<double> zeros(part.output.size()), output(part.output.size());
    part.stage->forward(microBatch, bytesOf(zeros), {}, bytesOf(part.weights),
                        bytesOf(output));
    return output;
  }
  void compareResidual(DropoutSite site, const std::string &bias) {
    for (uint32_t layer : {1, 2}) {
      std::vector<double> output = run(layer, {bias});
      std::vector<bool> kept =
          documentedMask(program, layer, site, microBatch, 2, 6 * 8);
      for (size_t i = 0; i < output.size(); ++i)
        EXPECT_DOUBLE_EQ(output[i], kept[i] ? 1 / 0.75 : 0);
    }
  }

  program::ProgramT program;
  MicroBatch microBatch{7, 9};
};

TEST_F(MaskTest, ofTheAttentionResidual) {
  compareResidual(kAttentionResidual, "attention_projection.bias");
}

TEST_F(MaskTest, ofTheMlpResidual) {
  compareResidual(kMlpResidual, "mlp_projection.bias");
}

TEST_F(MaskTest, ofTheAttentionProbabilities) {
  // All scores are equal, and all values are one. So each probability in row i
  // of the attention is 1 / (i + 1). Row i adds up the probabilities that
  // dropout keeps. A head has 4 columns, and the projection adds up the columns
  // of both heads.
  for (uint32_t layer : {1, 2}) {
    std::vector<double> output =
        run(layer, {"attention.bias", "attention_projection.weight"});
    std::vector<bool> kept =
        documentedMask(program, layer, kAttention, microBatch, 2, 2 * 6 * 6);
    std::vector<bool> residual = documentedMask(
        program, layer, kAttentionResidual, microBatch, 2, 6 * 8);
    for (size_t i = 0; i < output.size(); ++i) {
      const size_t row = i / 48, token = i / 8 % 6;
      double sum = 0;
      for (size_t head = 0; head < 2; ++head)
        for (size_t other = 0; other <= token; ++other)
          sum += 4.0 * kept[((2 * row + head) * 6 + token) * 6 + other];
      sum *= residual[i] / 0.75 / 0.75 / static_cast<double>(token + 1);
      EXPECT_NEAR(output[i], sum, 1e-12);
    }
  }
}

TEST(Gpt2StageTest, decaysMatricesOnly) {
  program::ProgramT program = smallProgram({}, {4});
  Line<double> line(program);
  auto &part = line.parts[0];
  std::fill(part.weights.begin(), part.weights.end(), 1);
  line.step(0, 1); // the gradient is zero
  const StageWeights model(program, 0, 4, DevicePlacement());
  for (const StageWeights::Slot &slot : model.slots())
    EXPECT_DOUBLE_EQ(part.weights[static_cast<size_t>(slot.offset)],
                     slot.parameter.shape.size() == 2 ? 1 - 1e-3 * 0.1 : 1)
        << slot.parameter.name;
}

TEST(Gpt2StageTest, startsAsLayoutSays) {
  program::ProgramT program =
      smallProgram({.width = 64, .vocabulary = 256}, {4});
  Line<double> line(program);
  const auto &part = line.parts[0];
  const StageWeights model(program, 0, 4, DevicePlacement());
  for (const StageWeights::Slot &slot : model.slots()) {
    const double *p = &part.weights[static_cast<size_t>(slot.offset)];
    const int64_t n = slot.parameter.elements();
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += p[i] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
      square += (p[i] - mean) * (p[i] - mean) / static_cast<double>(n);
    const bool drawn = slot.parameter.start == program::Initialization::Normal;
    const bool ones = slot.parameter.start == program::Initialization::Ones;
    EXPECT_NEAR(mean, ones ? 1 : 0, drawn ? 0.004 : 0);
    EXPECT_NEAR(std::sqrt(square), slot.parameter.deviation,
                0.1 * slot.parameter.deviation)
        << slot.parameter.name;
  }
  for (double value : part.state)
    EXPECT_EQ(value, 0);
}

TEST(Gpt2StageTest, startsTheSameInBothTypes) {
  Sizes sizes;
  Line<double> wide(smallProgram(sizes, {4}));
  sizes.type = program::DataType::Float32;
  Line<float> narrow(smallProgram(sizes, {4}));
  for (size_t i = 0; i < wide.parts[0].weights.size(); ++i)
    ASSERT_EQ(static_cast<float>(wide.parts[0].weights[i]),
              narrow.parts[0].weights[i]);
}

TEST(Gpt2StageTest, trainsInFloat32) {
  program::ProgramT program =
      smallProgram({.type = program::DataType::Float32}, {2, 2});
  Line<float> line(program);
  const double start = line.forward({0, 0});
  EXPECT_NEAR(start, std::log(11), 0.1);
  for (uint64_t step = 0; step < 30; ++step) {
    for (auto &part : line.parts)
      std::fill(part.gradient.begin(), part.gradient.end(), 0);
    line.forward({step, 0});
    line.backward({step, 0});
    line.step(step, 1);
  }
  EXPECT_LT(line.forward({0, 0}), 0.9 * start);
}

TEST(Gpt2StageTest, wholeModelIsAllStages) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  std::unique_ptr<Stage> whole = makeWholeModel(program, nullptr);
  std::vector<double> weights = line.whole(&Line<double>::Part::weights);
  std::vector<double> initial(weights.size()), state(2 * weights.size());
  whole->initialize(bytesOf(initial), bytesOf(state));
  EXPECT_EQ(initial, weights);
  double loss = 0;
  whole->forward({0, 0}, bytesOf(line.tokens), bytesOf(line.labels),
                 bytesOf(weights),
                 Bytes(reinterpret_cast<std::byte *>(&loss), 8));
  EXPECT_NEAR(loss, line.forward({0, 0}), 1e-14);
}

TEST(Gpt2StageTest, refusesAProgramWithoutModel) {
  program::ProgramT program = smallProgram({}, {2, 2});
  program.model.reset();
  for (auto make :
       {std::function<void()>([&] { makeWholeModel(program, nullptr); }),
        std::function<void()>([&] { makeGraphStage(program, 0); })})
    EXPECT_NE(refusal(make).find(
                  "expected a program with a model, got one of bare stages"),
              std::string::npos);
}

TEST(Gpt2StageTest, refusesABadModel) {
  program::ProgramT program = smallProgram({}, {4});
  program.model->layers[1]->kind = 9;
  EXPECT_NE(refusal([&] {
              makeGraphStage(program, 0);
            }).find("expected one of 3 kinds"),
            std::string::npos);
}

TEST(Gpt2StageTest, refusesAnUnknownOptimizer) {
  program::ProgramT program = smallProgram({}, {4});
  program.optimizer->name = "adam";
  EXPECT_EQ(refusal([&] { makeGraphStage(program, 0); }),
            "expected optimizer 'adamw', 'muon', 'sgd' or 'sgd-momentum', got "
            "'adam'");
  program.optimizer.reset();
  EXPECT_EQ(
      refusal([&] { makeGraphStage(program, 0); }),
      "expected optimizer 'adamw', 'muon', 'sgd' or 'sgd-momentum', got ''");
}

TEST(Gpt2StageTest, refusesStagesThatAreNotTheModels) {
  program::ProgramT program = smallProgram({}, {2, 1});
  EXPECT_EQ(refusal([&] { makeGraphStage(program, 1); }),
            "expected stages of the model's 4 layers, got the first 3");
  EXPECT_EQ(refusal([&] { makeGraphStage(program, 2); }),
            "expected one of the program's 2 stages, got 2");
  program = smallProgram({}, {2, 2});
  program.stages[1] =
      program::Stage(2, 3, 1, 2, 1, 1, 1, 0, 0, 0, 0, 0, /*boundary=*/0, 0);
  EXPECT_NE(refusal([&] {
              makeGraphStage(program, 1);
            }).find("expected a range of the model's 4 layers"),
            std::string::npos);
  // The stages of the program have the sizes of another model.
  program = smallProgram({}, {2, 2});
  setGpt2(program, {.width = 16});
  EXPECT_NE(
      refusal([&] { makeGraphStage(program, 0); }).find("stage 0: expected "),
      std::string::npos);
}

TEST(Gpt2StageTest, refusesBytesOfTheWrongSize) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  auto &part = line.parts[0];
  EXPECT_EQ(refusal([&] {
              part.stage->forward({0, 0}, bytesOf(line.tokens).subspan(8), {},
                                  bytesOf(part.weights), bytesOf(part.output));
            }),
            "expected 96 bytes of input, got 88");
}

TEST(Gpt2StageTest, refusesTokensOutsideTheVocabulary) {
  program::ProgramT program = smallProgram({}, {2, 2});
  Line<double> line(program);
  line.tokens[3] = 11;
  EXPECT_THROW(line.forward({0, 0}), std::exception);
  line.tokens[3] = 10;
  line.labels[3] = 11;
  EXPECT_THROW(line.forward({0, 0}), std::exception);
}

TEST(Gpt2StageTest, refusesAnothersStash) {
  program::ProgramT program = smallProgram({}, {4});
  Line<double> line(program), other(program);
  other.forward({0, 0});
  line.parts[0].stash = std::move(other.parts[0].stash);
  EXPECT_NE(refusal([&] {
              line.backward({0, 0});
            }).find("expected the stash"),
            std::string::npos);
}

} // namespace
} // namespace chimera::runtime
