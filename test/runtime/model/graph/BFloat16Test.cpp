//===- BFloat16Test.cpp - Stages that compute in bfloat16 -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/BFloat16.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace chimera::runtime {
namespace {

using namespace test;
using Mixed = Line<float, BFloat16>;

Sizes mixed(Sizes sizes = {}) {
  sizes.type = program::DataType::Float32;
  sizes.activations = program::DataType::BFloat16;
  return sizes;
}

Sizes float32(Sizes sizes = {}) {
  sizes.type = program::DataType::Float32;
  return sizes;
}

/// The norm of the difference of `ours` and `theirs`, relative to the norm of
/// `theirs`.
double relativeNorm(std::span<const float> ours,
                    std::span<const float> theirs) {
  if (ours.size() != theirs.size())
    return INFINITY;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(double{ours[i]} - theirs[i], 2);
    norm += std::pow(double{theirs[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

template <typename Line> auto gradientOf(const Line &line) {
  return line.once(&Line::Part::gradient);
}

/// The parameters of a stage in float32. In memory, their bfloat16 copy follows
/// them.
std::span<const float> parametersOf(const Mixed::Part &part) {
  return std::span(part.weights).first(part.gradient.size());
}
std::span<const BFloat16> bfloat16CopyOf(const Mixed::Part &part) {
  return {
      reinterpret_cast<const BFloat16 *>(&part.weights[part.gradient.size()]),
      part.gradient.size()};
}

void expectACopy(const Mixed &line) {
  for (const Mixed::Part &part : line.parts)
    for (size_t i = 0; i < part.gradient.size(); ++i)
      ASSERT_EQ(bfloat16CopyOf(part)[i], BFloat16(parametersOf(part)[i]));
}

const Sizes kModel{.layers = 3,
                   .heads = 2,
                   .width = 32,
                   .context = 16,
                   .vocabulary = 50,
                   .microBatchSize = 3};

TEST(BFloat16Test, isNearFloat32) {
  for (double dropout : {0.0, 0.2}) {
    Sizes sizes = kModel;
    sizes.dropout = dropout;
    Line<float> wide(smallProgram(float32(sizes), {2, 3}));
    Mixed narrow(smallProgram(mixed(sizes), {2, 3}));
    const double expected = wide.forward({0, 0}), got = narrow.forward({0, 0});
    // The tolerance is for bfloat16, which has eight bits of precision.
    EXPECT_NEAR(got, expected, 2e-3 * expected);
    EXPECT_NE(got, expected);
    wide.backward({0, 0});
    narrow.backward({0, 0});
    EXPECT_LT(relativeNorm(gradientOf(narrow), gradientOf(wide)), 2e-2);
  }
}

// The activations in a message are exactly those with which a single stage
// would compute.
TEST(BFloat16Test, isTheSameHoweverTheModelIsCut) {
  for (bool tied : {false, true}) {
    Sizes sizes = mixed(kModel);
    sizes.tied = tied;
    Mixed one(smallProgram(sizes, {5})), three(smallProgram(sizes, {2, 2, 1}));
    EXPECT_EQ(one.forward({0, 0}), three.forward({0, 0}));
    one.backward({0, 0});
    three.backward({0, 0});
    three.reduceTied();
    if (tied) // the gradients of both uses are added in another order
      EXPECT_LT(relativeNorm(gradientOf(one), gradientOf(three)), 1e-6);
    else
      EXPECT_EQ(gradientOf(one), gradientOf(three));
  }
}

TEST(BFloat16Test, splitBackwardEqualsTheWhole) {
  for (double dropout : {0.0, 0.2}) {
    Sizes sizes = mixed(kModel);
    sizes.dropout = dropout;
    program::ProgramT program = smallProgram(sizes, {2, 3});
    Mixed whole(program), split(program);
    for (uint64_t index : {0, 1}) {
      EXPECT_EQ(whole.forward({0, index}), split.forward({0, index}));
      whole.backward({0, index});
      split.inputGradient({0, index});
      split.weightGradient({0, index});
    }
    // The gradients differ slightly: the split backward computes LayerNorm
    // again, with different rounding.
    EXPECT_LT(relativeNorm(gradientOf(split), gradientOf(whole)), 5e-3);
  }
}

TEST(BFloat16Test, sumsOfGradientsAreOfFloat32) {
  Mixed line(smallProgram(mixed(kModel), {5}));
  line.forward({0, 0});
  line.backward({0, 0}, WgradMode::Overwrite);
  const std::vector<float> once = gradientOf(line);
  // A sum in bfloat16 would stop growing after about 256 equal summands.
  constexpr int kTimes = 400;
  for (int i = 1; i < kTimes; ++i) {
    line.forward({0, 0});
    line.backward({0, 0});
  }
  std::vector<float> many = gradientOf(line);
  for (float &value : many)
    value /= kTimes;
  EXPECT_LT(relativeNorm(many, once), 1e-4);
}

TEST(BFloat16Test, computesWithACopyOfTheParameters) {
  program::ProgramT program = smallProgram(mixed(), {2, 2});
  Mixed line(program);
  expectACopy(line);
  // Each update is too small to change a bfloat16 weight. The float32 weights
  // add up several updates.
  const std::vector<float> start = line.parts[0].weights;
  for (auto &part : line.parts)
    std::ranges::fill(part.gradient, 1.f);
  line.step(0, 1, /*rate=*/1e-5);
  EXPECT_NE(line.parts[0].weights, start);
  expectACopy(line);
  // The forward uses only the bfloat16 copy.
  const double loss = line.forward({0, 0});
  for (auto &part : line.parts)
    std::fill_n(part.weights.begin(), part.gradient.size(), 0.f);
  EXPECT_EQ(line.forward({0, 0}), loss);
}

TEST(BFloat16Test, trains) {
  program::ProgramT program = smallProgram(mixed(), {2, 2});
  Mixed line(program);
  const double start = line.forward({0, 0});
  EXPECT_NEAR(start, std::log(11), 0.1);
  for (uint64_t step = 0; step < 30; ++step) {
    line.forward({step, 0});
    line.backward({step, 0}, WgradMode::Overwrite);
    line.step(step, 1);
  }
  EXPECT_LT(line.forward({0, 0}), 0.9 * start);
  expectACopy(line);
}

TEST(BFloat16Test, partsAddUpToTheWhole) {
  Sizes sizes = mixed(kModel);
  sizes.microBatchSize = 4;
  program::ProgramT program = smallProgram(sizes, {5});
  Mixed whole(program), halves(program);
  double loss = whole.forward({0, 0});
  whole.backward({0, 0});
  auto &part = halves.parts[0];
  const size_t half = halves.tokens.size() / 2;
  double sum = 0;
  for (uint32_t number : {0, 1}) {
    const MicroBatch microBatch{0, 0, number, 2};
    double share = 0;
    auto halfOf = [&](std::vector<int64_t> &all) {
      return std::as_bytes(std::span(all).subspan(number * half, half));
    };
    auto stash = part.stage->forward(
        microBatch, halfOf(halves.tokens), halfOf(halves.labels),
        bytesOf(part.weights), std::as_writable_bytes(std::span(&share, 1)));
    sum += share;
    part.stage->backward(microBatch, std::move(stash),
                         std::as_writable_bytes(std::span(&loss, 1)),
                         bytesOf(part.weights), bytesOf(part.gradient), {},
                         number == 0 ? WgradMode::Overwrite : WgradMode::Add);
  }
  EXPECT_NEAR(sum, loss, 1e-6);
  EXPECT_LT(relativeNorm(gradientOf(halves), gradientOf(whole)), 5e-3);
}

using Narrow = Line<BFloat16>;

Sizes narrow(Sizes sizes = {}) {
  sizes.type = program::DataType::BFloat16;
  return sizes;
}

TEST(BFloat16Test, parametersMayBeBFloat16Too) {
  for (const auto &[optimizer, rate] :
       {std::pair("adamw", 2e-3), std::pair("muon", 2e-3),
        std::pair("sgd", 0.05), std::pair("sgd-momentum", 0.05)}) {
    program::ProgramT program = smallProgram(narrow(kModel), {2, 3});
    setOptimizer(program, optimizer);
    program::ProgramT programOfFloats = smallProgram(float32(kModel), {2, 3});
    setOptimizer(programOfFloats, optimizer);
    Narrow line(program);
    Line<float> wide(programOfFloats);
    EXPECT_EQ(line.parts[0].weights.size() * sizeof(BFloat16) * 2,
              wide.parts[0].weights.size() * sizeof(float));
    EXPECT_EQ(line.parts[0].stage->weightType(), ElementType::BFloat16);
    const double start = line.forward({0, 0});
    for (uint64_t step = 0; step < 20; ++step) {
      line.forward({step, 0});
      line.backward({step, 0}, WgradMode::Overwrite);
      wide.forward({step, 0});
      wide.backward({step, 0}, WgradMode::Overwrite);
      line.step(step, 1, rate);
      wide.step(step, 1, rate);
    }
    const double loss = line.forward({0, 0});
    EXPECT_LT(loss, start) << optimizer;
    EXPECT_NEAR(loss, wide.forward({0, 0}), 0.05 * start) << optimizer;
  }
}

// An update of parameters in bfloat16 is computed in float32, and then rounded.
TEST(BFloat16Test, updatesOfParametersAreRoundedOnce) {
  for (const char *optimizer : {"adamw", "sgd", "sgd-momentum"}) {
    SCOPED_TRACE(optimizer);
    program::ProgramT program = smallProgram(narrow(), {2, 2});
    setOptimizer(program, optimizer);
    program::ProgramT programOfFloats = smallProgram(float32(), {2, 2});
    setOptimizer(programOfFloats, optimizer);
    Narrow line(program);
    Line<float> wide(programOfFloats);
    for (uint64_t step = 0; step < 3; ++step) {
      line.forward({step, 0});
      line.backward({step, 0}, WgradMode::Overwrite);
      for (size_t s = 0; s < line.parts.size(); ++s) {
        Narrow::Part &from = line.parts[s];
        Line<float>::Part &to = wide.parts[s];
        to.weights.assign(from.weights.begin(), from.weights.end());
        to.state.assign(from.state.begin(), from.state.end());
        to.gradient.assign(from.gradient.begin(), from.gradient.end());
      }
      const auto before = line.parts[0].weights;
      line.step(step, 0.5, /*rate=*/1e-2);
      wide.step(step, 0.5, /*rate=*/1e-2);
      EXPECT_NE(line.parts[0].weights, before);
      for (size_t s = 0; s < line.parts.size(); ++s) {
        const Line<float>::Part &exact = wide.parts[s];
        EXPECT_EQ(
            line.parts[s].weights,
            std::vector<BFloat16>(exact.weights.begin(), exact.weights.end()));
        EXPECT_EQ(
            line.parts[s].state,
            std::vector<BFloat16>(exact.state.begin(), exact.state.end()));
      }
    }
  }
}

TEST(BFloat16Test, refusesWeightsWithoutTheirCopy) {
  program::ProgramT program = smallProgram(mixed(), {4});
  program::ProgramT without = smallProgram(float32(), {4});
  without.activation_type = program::DataType::BFloat16;
  EXPECT_THROW(makeGraphStage(without, 0), std::invalid_argument);
  program.weight_type = program::DataType::BFloat16;
  EXPECT_THROW(makeGraphStage(program, 0), std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
