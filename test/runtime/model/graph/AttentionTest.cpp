//===- AttentionTest.cpp - The attention call of a graph ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Attention.h"
#include "runtime/model/graph/FusedAttention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

namespace chimera::runtime {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr MicroBatch kMicroBatch{.step = 3, .index = 5};
constexpr DropoutSite kSite = 4;

Dropout dropoutOf(double probability,
                  std::optional<MicroBatch> microBatch = kMicroBatch) {
  return Dropout(probability, /*seed=*/7, /*layer=*/2, microBatch, nullptr);
}

struct HeadSizes {
  int64_t samples, heads, keyHeads, tokens, keys, width;

  std::vector<int64_t> queries() const {
    return {samples, heads, tokens, width};
  }
  std::vector<int64_t> ofKeys() const {
    return {samples, keyHeads, keys, width};
  }
};

// With the first sizes, attention with dropout processes all heads of a sample
// at once; then several heads with a rest at the end; then one at a time.
constexpr HeadSizes kSizes[] = {{2, 4, 4, 5, 5, 3},
                                {2, 6, 2, 4, 7, 8},
                                {1, 7, 7, 200, 200, 4},
                                {2, 2, 1, 520, 520, 2}};

AttentionCall callOf(const HeadSizes &s, at::ScalarType type) {
  return {.query = at::randn(s.queries(), type),
          .key = at::randn(s.ofKeys(), type),
          .value = at::randn(s.ofKeys(), type),
          .mask = {},
          .isCausal = false,
          .scale = 0.4,
          .site = kSite};
}

/// The masks to test: none, one for all samples and heads, and one for each
/// sample that hides all keys of a token.
std::vector<Tensor> masksFor(const HeadSizes &s, at::ScalarType type) {
  const Tensor hides =
      at::zeros({s.samples, 1, s.tokens, s.keys}, type)
          .masked_fill(at::rand({s.samples, 1, s.tokens, s.keys}) < 0.3,
                       -kInfinity);
  hides.select(2, 1).fill_(-kInfinity);
  return {Tensor(), at::randn({s.tokens, s.keys}, type), hides};
}

/// The formula of attention, written with operations that autograd can
/// differentiate.
Tensor plain(const AttentionCall &call, const Dropout &dropout) {
  const int64_t each = call.query.size(1) / call.key.size(1);
  const Tensor keys = call.key.repeat_interleave(each, 1),
               values = call.value.repeat_interleave(each, 1);
  Tensor scores = call.query.matmul(keys.transpose(2, 3)) * call.scale;
  if (call.mask.defined())
    scores = scores + call.mask;
  if (call.isCausal)
    scores = scores.masked_fill(
        at::ones({scores.size(2), scores.size(3)}, at::kBool).triu(1),
        -kInfinity);
  const Tensor isHidden = scores.detach().eq(-kInfinity).all(-1, true);
  const Tensor shares =
      scores.masked_fill(isHidden, 0).softmax(-1).masked_fill(isHidden, 0);
  if (!dropout.isActive())
    return shares.matmul(values);
  const Tensor kept =
      dropout.mask(kSite, shares.numel(), 0, shares.sizes(), shares.device());
  return (shares * kept * dropout.scale()).matmul(values);
}

/// Compares an attention and its gradients with the formula.
void compare(const AttentionCall &call, const Dropout &dropout,
             double tolerance) {
  const Tensor weights = at::randn_like(call.query);
  const AttentionResult got = attention(call, dropout);
  const auto gradients = attentionBackward(weights, call, got, dropout);
  at::AutoGradMode differentiable(true);
  AttentionCall wide = call;
  for (Tensor *each : {&wide.query, &wide.key, &wide.value})
    *each = each->detach().to(at::kDouble).set_requires_grad(true);
  if (wide.mask.defined())
    wide.mask = wide.mask.to(at::kDouble);
  const Tensor expected = plain(wide, dropout);
  const auto wanted =
      torch::autograd::grad({(expected * weights.to(at::kDouble)).sum()},
                            {wide.query, wide.key, wide.value});
  auto near = [&](const Tensor &a, const Tensor &b) {
    return at::allclose(a.to(at::kDouble), b, tolerance, tolerance);
  };
  EXPECT_TRUE(near(got.output, expected.detach()));
  EXPECT_EQ(got.output.strides(), at::empty_like(call.query).strides());
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_EQ(gradients[i].scalar_type(), call.query.scalar_type());
    EXPECT_TRUE(gradients[i].transpose(1, 2).is_contiguous()) << i;
    EXPECT_TRUE(near(gradients[i], wanted[i])) << i;
  }
}

TEST(AttentionCall, IsTheFormulaAndSoIsItsGradient) {
  for (const HeadSizes &s : kSizes)
    for (double dropped : {0., 0.3})
      for (bool isCausal : {false, true})
        for (const Tensor &mask : masksFor(s, at::kDouble)) {
          if (isCausal && mask.defined() && mask.dim() == 4)
            continue; // LibTorch's kernel takes one of the two
          SCOPED_TRACE(testing::Message()
                       << s.tokens << " tokens, dropout " << dropped
                       << ", causal " << isCausal << ", mask "
                       << (mask.defined() ? mask.dim() : 0));
          AttentionCall call = callOf(s, at::kDouble);
          call.mask = mask;
          call.isCausal = isCausal;
          compare(call, dropoutOf(dropped), 1e-9);
        }
}

// The kernels of GPUs take no shared keys. The result must be the same if each
// head has its own ones.
TEST(AttentionCall, WithKeysOfEachHeadIsTheSame) {
  for (const HeadSizes &s : kSizes) {
    const AttentionCall call = callOf(s, at::kDouble);
    const AttentionCall whole = withKeysOfEachHead(call);
    EXPECT_EQ(whole.key.size(1), s.heads);
    const Dropout dropout = dropoutOf(0);
    const Tensor gradient = at::randn_like(call.query);
    const AttentionResult one = attention(call, dropout),
                          other = attention(whole, dropout);
    EXPECT_TRUE(at::allclose(one.output, other.output, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(one.logSumExp, other.logSumExp, 1e-12, 1e-12));
    const auto wanted = attentionBackward(gradient, call, one, dropout),
               got = attentionBackward(gradient, whole, other, dropout);
    EXPECT_TRUE(at::allclose(got[0], wanted[0], 1e-12, 1e-12));
    for (size_t i : {1, 2})
      EXPECT_TRUE(at::allclose(sumOverHeads(got[i], s.keyHeads), wanted[i],
                               1e-12, 1e-12));
  }
}

// A number that is added to all scores of a token changes nothing, however
// large it is. Masks of transformers hide all keys of a padded token in this
// way.
TEST(AttentionCall, IsTheSameIfAMaskIsFarForAToken) {
  for (at::ScalarType type : {at::kFloat, at::kDouble})
    for (bool isCausal : {false, true})
      for (double far : {-1e9, -3.4e38}) {
        const HeadSizes s{2, 4, 2, 40, 40, 8};
        AttentionCall call = callOf(s, type);
        call.isCausal = isCausal;
        call.mask = at::randn({s.tokens, s.keys}, type);
        call.mask.narrow(1, 9, 5).fill_(-kInfinity);
        call.mask.select(0, 3).fill_(0);
        AttentionCall other = call;
        other.mask = call.mask.clone();
        other.mask.select(0, 3).fill_(far);
        const Dropout dropout = dropoutOf(0);
        const Tensor gradient = at::randn_like(call.query);
        const AttentionResult wanted = attention(call, dropout),
                              got = attention(other, dropout);
        const auto expected =
            attentionBackward(gradient, call, wanted, dropout);
        const auto gradients = attentionBackward(gradient, other, got, dropout);
        EXPECT_TRUE(got.output.equal(wanted.output));
        for (size_t i = 0; i < gradients.size(); ++i)
          EXPECT_TRUE(gradients[i].equal(expected[i]))
              << at::toString(type) << ", causal " << isCausal << ", " << far
              << ", gradient " << i;
      }
}

TEST(AttentionCall, ComputesInEachType) {
  for (double dropped : {0., 0.3}) {
    compare(callOf(kSizes[1], at::kFloat), dropoutOf(dropped), 1e-4);
    compare(callOf(kSizes[1], at::kBFloat16), dropoutOf(dropped), 4e-2);
  }
}

TEST(AttentionCall, ReadsTensorsOfAnyLayout) {
  AttentionCall call = callOf(kSizes[0], at::kDouble);
  for (Tensor *each : {&call.query, &call.key, &call.value})
    *each = each->transpose(1, 3).contiguous().transpose(1, 3);
  for (double dropped : {0., 0.3})
    compare(call, dropoutOf(dropped), 1e-9);
}

TEST(AttentionCall, DropsNothingWithoutAMicroBatch) {
  const AttentionCall call = callOf(kSizes[0], at::kFloat);
  EXPECT_TRUE(attention(call, dropoutOf(0.5, std::nullopt))
                  .output.equal(attention(call, dropoutOf(0)).output));
  EXPECT_FALSE(attention(call, dropoutOf(0.5))
                   .output.equal(attention(call, dropoutOf(0)).output));
}

TEST(AttentionCall, RefusesOperandsThatDoNotFit) {
  const HeadSizes s = kSizes[1];
  const std::function<void(AttentionCall &)> changes[] = {
      [](AttentionCall &c) { c.query = c.query[0]; },
      [](AttentionCall &c) { c.key = c.key.narrow(2, 0, 3); },
      [](AttentionCall &c) { c.value = c.value.narrow(3, 0, 2); },
      [](AttentionCall &c) { c.query = c.query.narrow(1, 0, 5); },
      [](AttentionCall &c) { c.key = c.key.to(at::kFloat); },
      [](AttentionCall &c) { c.query = c.query.to(at::kLong); },
      [](AttentionCall &c) {
        c.mask = at::zeros({3, 3});
      },
      [](AttentionCall &c) {
        c.mask = at::ones({4, 7}, at::kBool);
      },
      [](AttentionCall &c) {
        c.mask = at::zeros({2, 4, 7});
      },
      [](AttentionCall &c) { c.scale = kInfinity; },
  };
  const AttentionCall good = callOf(s, at::kDouble);
  const Dropout dropout = dropoutOf(0);
  const AttentionResult result = attention(good, dropout);
  for (const auto &change : changes) {
    AttentionCall bad = good;
    change(bad);
    EXPECT_THROW(attention(bad, dropout), std::invalid_argument);
    EXPECT_THROW(attentionBackward(result.output, bad, result, dropout),
                 std::invalid_argument);
  }
  const Tensor &sums = result.logSumExp;
  for (const AttentionResult &other :
       {AttentionResult{result.output.narrow(2, 0, 2), sums},
        AttentionResult{result.output, sums.narrow(1, 0, 2)},
        AttentionResult{result.output, sums.to(at::kFloat)}})
    EXPECT_THROW(attentionBackward(result.output, good, other, dropout),
                 std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
