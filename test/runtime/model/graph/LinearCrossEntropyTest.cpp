//===- LinearCrossEntropyTest.cpp - The last product and the loss ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/LinearCrossEntropy.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <stdexcept>

namespace chimera::runtime {
namespace {

using at::Tensor;

constexpr int64_t kIgnored = -100;

struct Extents {
  int64_t rows, classes, width;
};
// With the last sizes, there are several blocks of rows, and a rest.
constexpr Extents kExtents[] = {{1, 2, 1}, {7, 5, 3}, {600, 4096, 3}};

LinearCrossEntropyCall callOf(const Extents &sizes, at::ScalarType type,
                              bool hasBias, bool isMean) {
  Tensor labels = at::randint(sizes.classes, {sizes.rows}, at::kLong);
  if (sizes.rows > 2)
    labels.narrow(0, 1, sizes.rows / 3).fill_(kIgnored);
  return {.input = at::randn({sizes.rows, sizes.width}, type),
          .weight = at::randn({sizes.classes, sizes.width}, type),
          .bias = hasBias ? at::randn({sizes.classes}, type) : Tensor(),
          .labels = labels,
          .ignored = kIgnored,
          .isMean = isMean};
}

/// The loss and the gradients that autograd computes in float64.
LinearCrossEntropyResults byAutograd(LinearCrossEntropyCall call,
                                     double gradient) {
  at::AutoGradMode differentiable(true);
  std::vector<Tensor> operands;
  for (Tensor *each : {&call.input, &call.weight, &call.bias})
    if (each->defined()) {
      *each = each->detach().to(at::kDouble).set_requires_grad(true);
      operands.push_back(*each);
    }
  Tensor logits = call.input.mm(call.weight.t());
  if (call.bias.defined())
    logits = logits + call.bias;
  const Tensor loss = at::cross_entropy_loss(
      logits, call.labels, {},
      call.isMean ? at::Reduction::Mean : at::Reduction::Sum, call.ignored);
  auto made = torch::autograd::grad({loss * gradient}, operands);
  made.resize(3);
  return {.input = made[0],
          .weight = made[1],
          .bias = made[2],
          .loss = loss.detach()};
}

void expectNear(const Tensor &found, const Tensor &expected, double tolerance,
                const char *what) {
  ASSERT_TRUE(found.defined()) << what;
  EXPECT_TRUE(at::allclose(found.to(at::kDouble), expected, tolerance,
                           tolerance * expected.abs().max().item<double>()))
      << what;
}

TEST(LinearCrossEntropy, isWhatAutogradComputes) {
  at::manual_seed(1);
  constexpr double kGradient = 0.25;
  for (const Extents &sizes : kExtents)
    for (auto [type, tolerance] :
         {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 2e-5),
          std::pair(at::kBFloat16, 0.05)})
      for (bool hasBias : {false, true})
        for (bool isMean : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << sizes.rows << " rows, " << sizes.classes
                       << " classes, " << type << ", " << hasBias << isMean);
          const auto call = callOf(sizes, type, hasBias, isMean);
          const auto expected = byAutograd(call, kGradient);
          expectNear(linearCrossEntropy(call), expected.loss, tolerance,
                     "forward");
          LinearCrossEntropyResults found{.wantsBias = hasBias};
          linearCrossEntropyBackward(at::full({}, kGradient), call, found);
          expectNear(found.loss, expected.loss, tolerance, "loss");
          EXPECT_TRUE(found.loss.equal(linearCrossEntropy(call)));
          expectNear(found.input, expected.input, tolerance, "input");
          expectNear(found.weight, expected.weight, tolerance, "weight");
          EXPECT_EQ(found.input.scalar_type(), type);
          EXPECT_EQ(found.weight.scalar_type(), type);
          if (hasBias)
            expectNear(found.bias, expected.bias, tolerance, "bias");
        }
}

TEST(LinearCrossEntropy, addsToAGradientSum) {
  const auto call = callOf(kExtents[2], at::kDouble, false, true);
  const Tensor gradient = at::ones({}, at::kDouble);
  LinearCrossEntropyResults alone;
  linearCrossEntropyBackward(gradient, call, alone);
  for (bool hasBegun : {false, true}) {
    GradientSum sum{at::full_like(call.weight, 7), hasBegun};
    LinearCrossEntropyResults found{.weightSum = &sum};
    linearCrossEntropyBackward(gradient, call, found);
    EXPECT_FALSE(found.weight.defined());
    EXPECT_TRUE(sum.hasBegun);
    expectNear(sum.gradient, alone.weight + (hasBegun ? 7 : 0), 1e-12, "sum");
  }
}

// Blocks of rows are added in float32, and only their sum is rounded.
TEST(LinearCrossEntropy, addsBlocksToANarrowSumAtOnce) {
  const auto call = callOf(kExtents[2], at::kBFloat16, false, true);
  const Tensor gradient = at::ones({}, at::kFloat);
  GradientSum wide{at::zeros_like(call.weight, at::kFloat), false};
  LinearCrossEntropyResults exact{.weightSum = &wide};
  linearCrossEntropyBackward(gradient, call, exact);
  for (bool hasBegun : {false, true}) {
    GradientSum sum{at::full_like(call.weight, 0.5), hasBegun};
    const Tensor expected =
        hasBegun ? at::full_like(call.weight, 0.5).add_(wide.gradient)
                 : wide.gradient.to(at::kBFloat16);
    LinearCrossEntropyResults found{.weightSum = &sum};
    linearCrossEntropyBackward(gradient, call, found);
    EXPECT_FALSE(found.weight.defined());
    EXPECT_TRUE(sum.hasBegun);
    EXPECT_TRUE(sum.gradient.equal(expected));
  }
}

// The two halves of a split backward want different results.
TEST(LinearCrossEntropy, makesOnlyWhatIsWanted) {
  const auto call = callOf(kExtents[1], at::kDouble, true, false);
  const Tensor gradient = at::ones({}, at::kDouble);
  LinearCrossEntropyResults whole;
  linearCrossEntropyBackward(gradient, call, whole);
  for (int wanted = 0; wanted < 16; ++wanted) {
    LinearCrossEntropyResults found{.wantsInput = (wanted & 1) != 0,
                                    .wantsWeight = (wanted & 2) != 0,
                                    .wantsBias = (wanted & 4) != 0,
                                    .wantsLoss = (wanted & 8) != 0};
    linearCrossEntropyBackward(gradient, call, found);
    auto compare = [](bool isWanted, const Tensor &got, const Tensor &all) {
      EXPECT_EQ(got.defined(), isWanted);
      EXPECT_TRUE(!isWanted || got.equal(all));
    };
    compare(found.wantsInput, found.input, whole.input);
    compare(found.wantsWeight, found.weight, whole.weight);
    compare(found.wantsBias, found.bias, whole.bias);
    compare(found.wantsLoss, found.loss, whole.loss);
  }
}

TEST(LinearCrossEntropy, leavesOutIgnoredRows) {
  auto call = callOf({4, 3, 2}, at::kDouble, false, false);
  call.labels.fill_(kIgnored);
  EXPECT_EQ(linearCrossEntropy(call).item<double>(), 0);
  LinearCrossEntropyResults found{.wantsBias = false};
  linearCrossEntropyBackward(at::ones({}, at::kDouble), call, found);
  EXPECT_TRUE(found.weight.equal(at::zeros_like(call.weight)));
  // As in PyTorch, a mean over nothing is no number, but its gradients are 0.
  call.isMean = true;
  EXPECT_TRUE(linearCrossEntropy(call).isnan().item<bool>());
  linearCrossEntropyBackward(at::ones({}, at::kDouble), call, found);
  EXPECT_TRUE(found.loss.isnan().item<bool>());
  EXPECT_TRUE(found.weight.equal(at::zeros_like(call.weight)));
  EXPECT_TRUE(found.input.equal(at::zeros_like(call.input)));
  // An ignored row may have an infinite loss.
  call.isMean = false;
  call.labels[1] = 2;
  call.weight.index_put_({at::scalar_tensor(0, at::kLong)},
                         at::scalar_tensor(1e308, at::kDouble));
  call.input.fill_(0);
  call.input[0].fill_(-1e308);
  EXPECT_TRUE(linearCrossEntropy(call).isfinite().item<bool>());
}

TEST(LinearCrossEntropy, refusesWrongOperands) {
  const auto whole = callOf({4, 3, 2}, at::kFloat, true, true);
  auto refuses = [&](auto change) {
    auto call = whole;
    change(call);
    EXPECT_THROW(linearCrossEntropy(call), std::invalid_argument);
    LinearCrossEntropyResults found;
    EXPECT_THROW(
        linearCrossEntropyBackward(at::ones({}, at::kFloat), call, found),
        std::invalid_argument);
  };
  using Call = LinearCrossEntropyCall;
  refuses([](Call &c) { c.input = at::randn({4, 3}); });
  refuses([](Call &c) { c.input = at::randn({4}); });
  refuses([](Call &c) { c.input = at::randn({4, 2}, at::kDouble); });
  refuses([](Call &c) { c.weight = at::ones({3, 2}, at::kLong); });
  refuses([](Call &c) { c.bias = at::randn({2}); });
  refuses([](Call &c) { c.labels = c.labels.narrow(0, 0, 3); });
  refuses([](Call &c) { c.labels = c.labels.to(at::kInt); });
  LinearCrossEntropyResults found;
  EXPECT_THROW(linearCrossEntropyBackward(at::ones({2}), whole, found),
               std::invalid_argument);
  for (int64_t label : {3, -1}) {
    auto call = whole;
    call.labels = call.labels.clone();
    call.labels[2] = label;
    EXPECT_THROW(linearCrossEntropy(call), c10::Error) << label;
    LinearCrossEntropyResults some{.wantsLoss = false};
    EXPECT_THROW(
        linearCrossEntropyBackward(at::ones({}, at::kFloat), call, some),
        c10::Error)
        << label;
  }
}

} // namespace
} // namespace chimera::runtime
