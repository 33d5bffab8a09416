//===- Gpt2OracleTest.cpp - GPT-2's package against plain LibTorch --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gpt2Package.h states the forward and the backward as graphs. The oracle has
// the forward as plain code, and autograd differentiates it. Both must compute
// the same losses and gradients.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/StageWeights.h"
#include "test/oracle/Gpt2.h"
#include "test/runtime/model/SmallModel.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/BFloat16.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

namespace chimera::runtime {
namespace {

using namespace test;

enum class Backward { Whole, Split };

/// Losses and gradient sums of three micro-batches.
struct Results {
  std::vector<double> losses, gradients;
};

constexpr MicroBatch kMicroBatches[] = {{4, 0}, {4, 1}, {4, 2}};

/// Changes the weights, because half of the initial ones are zero or one.
template <typename T, typename A> void changeWeights(Line<T, A> &line) {
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
}

template <typename T, typename A>
Results ofPackage(Line<T, A> &line, Backward backward) {
  Results results;
  WgradMode mode = WgradMode::Overwrite;
  for (MicroBatch microBatch : kMicroBatches) {
    line.forward(microBatch);
    if (backward == Backward::Whole) {
      line.backward(microBatch, mode);
    } else {
      line.inputGradient(microBatch);
      line.weightGradient(microBatch, mode);
    }
    mode = WgradMode::Add;
    results.losses.push_back(line.loss);
  }
  const std::vector<T> gradients = line.whole(&Line<T, A>::Part::gradient);
  results.gradients.assign(gradients.begin(), gradients.end());
  return results;
}

/// The results of the oracle for the weights, tokens and labels of `line`.
template <typename T, typename A>
Results ofOracle(const Sizes &sizes, const program::ProgramT &program,
                 Line<T, A> &line) {
  Gpt2Parameters parameters;
  std::vector<at::Tensor> leaves; // in the order of the stages' gradients
  for (size_t s = 0; s < line.parts.size(); ++s) {
    const StageWeights weights(program, program.stages[s].first_layer(),
                               program.stages[s].layers(), {});
    const std::vector<at::Tensor> all =
        weights.computedTensorsOver(bytesOf(line.parts[s].weights).data());
    for (size_t i = 0; i < all.size(); ++i) {
      leaves.push_back(all[i].clone().set_requires_grad(true));
      const StageWeights::Slot &slot = weights.slots()[i];
      parameters[{slot.layer, slot.number}] = leaves.back();
    }
  }
  auto tensorOf = [&](std::vector<int64_t> &tokens) {
    return at::from_blob(tokens.data(), {sizes.microBatchSize, sizes.context},
                         at::kLong);
  };
  const at::AutoGradMode differentiable(true);
  Results results;
  for (MicroBatch microBatch : kMicroBatches) {
    const at::Tensor loss = gpt2Loss(
        sizes.gpt2().sizes(), program.seed, parameters, tensorOf(line.tokens),
        tensorOf(line.labels), microBatch, c10::CppTypeToScalarType<T>::value);
    results.losses.push_back(loss.template item<double>());
    std::vector<double> gradients;
    for (const at::Tensor &each : torch::autograd::grad({loss}, leaves)) {
      const at::Tensor wide = each.to(at::kDouble).contiguous();
      const auto *begin = wide.template const_data_ptr<double>();
      gradients.insert(gradients.end(), begin, begin + wide.numel());
    }
    results.gradients.resize(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i)
      results.gradients[i] += gradients[i];
  }
  return results;
}

/// Expects differences of at most `tolerance`, relative to the largest
/// gradient.
template <typename T, typename A = T>
void expectEqual(Sizes sizes, const std::vector<uint32_t> &layers,
                 double tolerance) {
  for (double dropout : {0.0, 0.3}) {
    sizes.dropout = dropout;
    const program::ProgramT program = smallProgram(sizes, layers);
    Line<T, A> line(program);
    changeWeights(line);
    const Results expected = ofOracle(sizes, program, line);
    double largest = 0;
    for (double gradient : expected.gradients)
      largest = std::max(largest, std::abs(gradient));
    EXPECT_GT(largest, 1e-3);
    for (Backward backward : {Backward::Whole, Backward::Split}) {
      const Results got = ofPackage(line, backward);
      EXPECT_LE(largestDifference(got.losses, expected.losses),
                tolerance * expected.losses[0]);
      EXPECT_LE(largestDifference(got.gradients, expected.gradients),
                tolerance * largest);
    }
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
