//===- AdamWTest.cpp - The optimizer compared with PyTorch's --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/AdamW.h"
#include "runtime/model/tensors/Tensors.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <vector>

namespace chimera::runtime {
namespace {

constexpr double kRate = 3e-3;

program::OptimizerT optimizer() {
  program::OptimizerT optimizer;
  optimizer.name = "adamw";
  optimizer.beta1 = 0.85;
  optimizer.beta2 = 0.97;
  optimizer.epsilon = 1e-7;
  optimizer.weight_decay = 0.2;
  return optimizer;
}

// Makes some steps with our optimizer and with PyTorch's, from equal weights
// and with equal gradients. Returns the largest difference between the weights.
template <typename T> double differenceFromTorch(bool decay, double scale) {
  const int64_t n = 37;
  program::OptimizerT ours = optimizer();
  at::Tensor start = at::linspace(
      -1, 1, n, at::TensorOptions(c10::CppTypeToScalarType<T>::value));
  std::vector<T> weights(start.data_ptr<T>(), start.data_ptr<T>() + n);
  std::vector<T> average(n), squares(n);

  at::Tensor parameter = start.clone().set_requires_grad(true);
  torch::optim::AdamW theirs({parameter},
                             torch::optim::AdamWOptions(kRate)
                                 .betas({ours.beta1, ours.beta2})
                                 .eps(ours.epsilon)
                                 .weight_decay(decay ? ours.weight_decay : 0));
  for (uint64_t step = 0; step < 20; ++step) {
    at::Tensor gradient =
        (at::linspace(0, 6, n, start.options()) + static_cast<double>(step))
            .sin();
    gradient[3] = 0; // so the root of the average is 0
    adamWStep<T>(ours, {step, kRate, scale}, decay, n, gradient.data_ptr<T>(),
                 weights.data(), average.data(), squares.data());
    parameter.mutable_grad() = gradient * scale;
    theirs.step();
  }
  EXPECT_GT((parameter.detach() - start).abs().max().template item<double>(),
            1e-3);
  return (at::from_blob(weights.data(), {n}, start.options()) -
          parameter.detach())
      .abs()
      .max()
      .template item<double>();
}

TEST(AdamWTest, equalsPyTorchs) {
  EXPECT_LE(differenceFromTorch<double>(true, 1), 1e-14);
  EXPECT_LE(differenceFromTorch<float>(true, 1), 1e-6);
}

// Weights and averages in bfloat16 are updated in float32, and then rounded.
TEST(AdamWTest, roundsOnlyTheResultsToBFloat16) {
  const int64_t n = 1003;
  std::vector<float> gradient(n), weights(n), average(n), squares(n);
  std::vector<BFloat16> ofGradient, ofWeights, ofAverage, ofSquares;
  // Also makes `wide` exact in bfloat16.
  auto narrow = [](std::vector<float> &wide) {
    std::vector<BFloat16> all;
    for (float &value : wide)
      value = all.emplace_back(value);
    return all;
  };
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(i);
    gradient[i] = std::sin(x);
    weights[i] = std::cos(x);
    average[i] = std::sin(2 * x);
    squares[i] = 1 + std::cos(3 * x);
  }
  ofGradient = narrow(gradient);
  ofWeights = narrow(weights);
  ofAverage = narrow(average);
  ofSquares = narrow(squares);
  const std::vector<float> start = weights;
  const Update numbers{.number = 2, .learningRate = 0.05, .scale = 0.5};
  adamWStep<float>(optimizer(), numbers, true, n, gradient.data(),
                   weights.data(), average.data(), squares.data());
  adamWStep<BFloat16>(optimizer(), numbers, true, n, ofGradient.data(),
                      ofWeights.data(), ofAverage.data(), ofSquares.data());
  EXPECT_NE(weights, start);
  EXPECT_EQ(ofWeights, narrow(weights));
  EXPECT_EQ(ofAverage, narrow(average));
  EXPECT_EQ(ofSquares, narrow(squares));
}

TEST(AdamWTest, decaysOnlyWhereTold) {
  EXPECT_LE(differenceFromTorch<double>(false, 1), 1e-14);
}

TEST(AdamWTest, scalesTheGradient) {
  EXPECT_LE(differenceFromTorch<double>(true, 0.125), 1e-14);
}

TEST(AdamWTest, isTheSameOnAnyNumberOfThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "it does not see how OpenMP's threads meet";
#endif
  const int64_t n = 200003;
  auto weightsOn = [&](int threads) {
    setThreads(threads);
    at::Tensor gradient = at::linspace(-3, 3, n).sin();
    std::vector<float> weights(n, 0.5f), average(n, 0.1f), squares(n, 0.2f);
    for (uint64_t step = 0; step < 3; ++step)
      adamWStep<float>(optimizer(), {step, kRate, 0.5}, true, n,
                       gradient.data_ptr<float>(), weights.data(),
                       average.data(), squares.data());
    return weights;
  };
  std::vector<float> alone = weightsOn(1);
  EXPECT_EQ(weightsOn(3), alone);
  setThreads(1);
}

} // namespace
} // namespace chimera::runtime
