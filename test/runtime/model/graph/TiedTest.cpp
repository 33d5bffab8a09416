//===- TiedTest.cpp - A head that multiplies by the token embedding -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first and the last stage both have the tied matrix. In a run,
// instructions add up the gradients of both copies, so both copies stay equal.
// Here the tests add them up.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/StageWeights.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace chimera::runtime {
namespace {

using namespace test;

template <typename T>
std::vector<T> tiedCopyOf(Line<T> &line, std::vector<T> Line<T>::Part::*member,
                          bool last) {
  std::span<T> tied = line.tiedOf(member, last);
  return {tied.begin(), tied.end()};
}

// The results of three training steps of two micro-batches each.
template <typename T> struct TrainedTied {
  std::vector<double> losses;
  std::vector<T> weights, gradient;
};
template <typename T>
TrainedTied<T> trainTied(const program::ProgramT &program) {
  using Part = typename Line<T>::Part;
  Line<T> line(program);
  TrainedTied<T> trained;
  for (uint64_t step = 0; step < 3; ++step) {
    for (Part &part : line.parts)
      std::fill(part.gradient.begin(), part.gradient.end(), T{0});
    for (uint64_t index : {0, 1}) {
      trained.losses.push_back(line.forward({step, index}));
      line.backward({step, index});
    }
    line.reduceTied();
    line.step(step, 0.5);
    EXPECT_EQ(tiedCopyOf(line, &Part::weights, /*last=*/false),
              tiedCopyOf(line, &Part::weights, /*last=*/true))
        << "step " << step;
  }
  trained.weights = line.once(&Part::weights);
  trained.gradient = line.once(&Part::gradient);
  return trained;
}

class TiedTest : public testing::TestWithParam<double> {};

// Stages train like the whole model, even if a stage has only the embedding or
// only the head.
TEST_P(TiedTest, stagesEqualTheWhole) {
  Sizes sizes{.layers = 3, .dropout = GetParam(), .tied = true};
  const TrainedTied<double> whole = trainTied<double>(smallProgram(sizes, {5}));
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (auto split : std::vector<std::vector<uint32_t>>{
           {1, 4}, {2, 3}, {4, 1}, {1, 1, 1, 1, 1}}) {
    const TrainedTied<double> parts =
        trainTied<double>(smallProgram(sizes, split));
    EXPECT_LE(largestDifference(parts.losses, whole.losses), 1e-12);
    EXPECT_LE(largestDifference(parts.weights, whole.weights), 1e-12);
    EXPECT_LE(largestDifference(parts.gradient, whole.gradient), 1e-12);
  }
  // A model with two separate matrices gives another result.
  sizes.tied = false;
  const TrainedTied<double> untied =
      trainTied<double>(smallProgram(sizes, {5}));
  EXPECT_GT(std::abs(untied.losses.back() - whole.losses.back()), 1e-6);
}

TEST_P(TiedTest, copiesStayEqualInFloat32) {
  Sizes sizes{
      .dropout = GetParam(), .type = program::DataType::Float32, .tied = true};
  const TrainedTied<float> whole = trainTied<float>(smallProgram(sizes, {4}));
  const TrainedTied<float> parts =
      trainTied<float>(smallProgram(sizes, {2, 2}));
  EXPECT_LE(largestDifference(parts.losses, whole.losses), 1e-4);
}

// A single stage adds the gradients of both uses of the matrix. Compares the
// gradient with central differences of the loss, for some elements of every
// parameter.
TEST_P(TiedTest, gradientIsTheLossesDerivative) {
  program::ProgramT program =
      smallProgram({.dropout = GetParam(), .tied = true}, {4});
  Line<double> line(program);
  auto &part = line.parts[0];
  // Change the initial weights, because half of them are zero or one.
  for (size_t i = 0; i < part.weights.size(); ++i)
    part.weights[i] += 0.1 * std::sin(static_cast<double>(i));
  const MicroBatch microBatch{3, 5};
  line.forward(microBatch);
  line.backward(microBatch);
  const StageWeights model(program, 0, 4, DevicePlacement());
  for (const StageWeights::Slot &slot : model.slots())
    for (int64_t k = 0; k < slot.parameter.elements(); k += 7) {
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
INSTANTIATE_TEST_SUITE_P(Dropout, TiedTest, testing::Values(0.0, 0.3));

TEST(TiedTest, startsAsTheTokenEmbedding) {
  using Part = Line<double>::Part;
  Line<double> whole(smallProgram({.tied = true}, {4}));
  Line<double> parts(smallProgram({.tied = true}, {2, 1, 1}));
  EXPECT_EQ(parts.once(&Part::weights), whole.whole(&Part::weights));
  const std::vector<double> first =
      tiedCopyOf(parts, &Part::weights, /*last=*/false);
  ASSERT_EQ(first.size(), 11u * 8);
  EXPECT_EQ(first, tiedCopyOf(parts, &Part::weights, /*last=*/true));
  // All other parameters have the same initial values as without the tie.
  std::vector<double> untied =
      Line<double>(smallProgram({}, {4})).whole(&Part::weights);
  untied.resize(untied.size() - first.size());
  EXPECT_EQ(untied, whole.whole(&Part::weights));
}

// The program has three stages. The first and the last stage have the tied
// matrix.
TEST(TiedTest, refusesTiedParametersThatAreNotTheModels) {
  auto refusal = [&](const std::function<void(program::ProgramT &)> &change) {
    program::ProgramT program = smallProgram({.tied = true}, {1, 2, 1});
    change(program);
    try {
      makeGraphStage(program, 1);
    } catch (const std::invalid_argument &error) {
      return std::string(error.what());
    }
    return std::string("(accepted)");
  };
  const std::string expected =
      "expected 704 bytes at 0 of the first stage and 128 of the last as tied "
      "parameters for this model, got ";
  EXPECT_EQ(refusal([](program::ProgramT &) {}), "(accepted)");
  EXPECT_EQ(refusal([](program::ProgramT &program) { program.tied.reset(); }),
            expected + "none");
  EXPECT_EQ(refusal([](program::ProgramT &program) {
              *program.tied = program::Tied(0, 0, 704);
            }),
            expected + "704 bytes at 0 of the first stage and 0 of the last");
  EXPECT_EQ(
      refusal([](program::ProgramT &program) { setGpt2(program, {}); }),
      "expected none as tied parameters for this model, got 704 bytes at 0 of "
      "the first stage and 128 of the last");
  // A program with a single stage must not state tied parameters.
  program::ProgramT alone = smallProgram({.tied = true}, {4});
  EXPECT_NO_THROW(makeGraphStage(alone, 0));
  alone.tied = std::make_unique<program::Tied>(0, 128, 704);
  EXPECT_THROW(makeGraphStage(alone, 0), std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
