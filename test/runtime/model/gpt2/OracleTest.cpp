//===- OracleTest.cpp - GPT-2's package against layers written by hand ----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gpt2Package.h states the forward and the backward as graphs.
// TransformerStage.h has the forward in C++ and lets autograd differentiate it.
// Both must compute the same losses and gradients.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/TransformerStage.h"
#include "test/runtime/model/SmallModel.h"

#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

namespace chimera::runtime {
namespace {

using namespace test;

enum class Backward { Whole, Split };

/// Losses and gradient sums of three micro-batches.
struct Results {
  std::vector<double> losses, gradients;
};

template <typename T, typename A>
Results train(Line<T, A> line, Backward backward) {
  Results results;
  // Half of the initial weights are zero or one, so change them.
  for (auto &part : line.parts) {
    for (size_t i = 0; i < part.gradient.size(); ++i)
      part.weights[i] +=
          static_cast<T>(0.1 * std::sin(static_cast<double>(7 * i)));
    auto copy =
        reinterpret_cast<A *>(part.weights.data() + part.gradient.size());
    if constexpr (!std::is_same_v<T, A>)
      for (size_t i = 0; i < part.gradient.size(); ++i)
        copy[i] = static_cast<A>(part.weights[i]);
  }
  for (uint64_t index : {0, 1, 2}) {
    const MicroBatch microBatch{4, index};
    const WgradMode mode = index == 0 ? WgradMode::Overwrite : WgradMode::Add;
    line.forward(microBatch);
    if (backward == Backward::Whole) {
      line.backward(microBatch, mode);
    } else {
      line.inputGradient(microBatch);
      line.weightGradient(microBatch, mode);
    }
    results.losses.push_back(line.loss);
  }
  const std::vector<T> gradients = line.whole(&Line<T, A>::Part::gradient);
  results.gradients.assign(gradients.begin(), gradients.end());
  return results;
}

/// Expects differences of at most `tolerance`, relative to the largest
/// gradient.
template <typename T, typename A = T>
void expectEqual(Sizes sizes, const std::vector<uint32_t> &layers,
                 double tolerance) {
  for (double dropout : {0.0, 0.3})
    for (Backward backward : {Backward::Whole, Backward::Split}) {
      sizes.dropout = dropout;
      const program::ProgramT program = smallProgram(sizes, layers);
      const Results package = train(Line<T, A>(program), backward);
      const Results byHand =
          train(Line<T, A>(program,
                           [](const program::ProgramT &whole, uint32_t stage) {
                             return makeTransformerStage(whole, stage);
                           }),
                backward);
      double largest = 0;
      for (double gradient : byHand.gradients)
        largest = std::max(largest, std::abs(gradient));
      EXPECT_GT(largest, 1e-3);
      EXPECT_LE(largestDifference(package.losses, byHand.losses),
                tolerance * byHand.losses[0]);
      EXPECT_LE(largestDifference(package.gradients, byHand.gradients),
                tolerance * largest);
    }
}

const std::vector<std::vector<uint32_t>> kCuts = {{4}, {2, 2}, {1, 1, 1, 1}};

TEST(Gpt2Oracle, AgreesInFloat64) {
  for (const auto &layers : kCuts)
    for (bool tied : {false, true})
      expectEqual<double>({.tied = tied}, layers, 1e-13);
  // One head, one token in a sample, and sizes that are not powers of two.
  expectEqual<double>({.heads = 1, .width = 3}, {4}, 1e-13);
  expectEqual<double>({.heads = 7, .width = 21, .context = 1, .vocabulary = 3},
                      {4}, 1e-13);
}

TEST(Gpt2Oracle, AgreesInOtherTypesUpToRounding) {
  Sizes sizes{.type = program::DataType::Float32};
  expectEqual<float>(sizes, {2, 2}, 1e-5);
  sizes.activations = program::DataType::BFloat16;
  expectEqual<float, c10::BFloat16>(sizes, {2, 2}, 2e-2);
}

// Heads of many classes compute the loss in the backward.
TEST(Gpt2Oracle, AgreesWithManyClasses) {
  for (bool tied : {false, true})
    expectEqual<double>({.vocabulary = 4096, .tied = tied}, {2, 2}, 1e-13);
  Sizes sizes{.vocabulary = 5000, .type = program::DataType::Float32};
  expectEqual<float>(sizes, {2, 2}, 1e-5);
  sizes.activations = program::DataType::BFloat16;
  expectEqual<float, c10::BFloat16>(sizes, {2, 2}, 2e-2);
}

} // namespace
} // namespace chimera::runtime
