//===- AttentionTest.cpp - Causal self-attention on tensors ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/Attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace chimera::runtime;

namespace {
using at::Tensor;

struct Sizes {
  int64_t samples, heads, tokens, width;
};

constexpr MicroBatch kMicroBatch{.step = 3, .index = 5};

Dropout dropoutOf(double probability) {
  return Dropout(probability, /*seed=*/7, /*layer=*/2, kMicroBatch, nullptr);
}

/// The formula of attention, written with operations that autograd can
/// differentiate.
Tensor plain(const Tensor &projected, const Sizes &s, const Dropout &dropout) {
  std::vector<Tensor> parts = projected.split(s.heads * s.width, -1);
  for (Tensor &part : parts)
    part = part.view({s.samples, s.tokens, s.heads, s.width}).transpose(1, 2);
  Tensor scores = parts[0].matmul(parts[1].transpose(2, 3)) /
                  std::sqrt(static_cast<double>(s.width));
  scores = scores.masked_fill(at::ones({s.tokens, s.tokens}, at::kBool).triu(1),
                              -std::numeric_limits<double>::infinity());
  return dropout(scores.softmax(-1), kAttention)
      .matmul(parts[2])
      .transpose(1, 2)
      .reshape({s.samples, s.tokens, s.heads * s.width});
}

// With these sizes, attention processes all heads at once, several heads at a
// time with a rest at the end, and one head at a time.
TEST(Attention, IsTheFormulaAndSoIsItsGradient) {
  at::AutoGradMode differentiable(true);
  for (const Sizes &s :
       {Sizes{2, 2, 5, 3}, Sizes{1, 7, 200, 4}, Sizes{2, 1, 520, 2}})
    for (double probability : {0., 0.3}) {
      const Dropout dropout = dropoutOf(probability);
      const Tensor projected =
          at::randn({s.samples, s.tokens, 3 * s.heads * s.width}, at::kDouble)
              .set_requires_grad(true);
      const Tensor weights =
          at::randn({s.samples, s.tokens, s.heads * s.width}, at::kDouble);
      auto gradient = [&](const Tensor &output) {
        return torch::autograd::grad({(output * weights).sum()},
                                     {projected})[0];
      };
      const Tensor got = causalAttention(projected, s.heads, dropout),
                   expected = plain(projected, s, dropout);
      EXPECT_TRUE(at::allclose(got, expected, 1e-10, 1e-12)) << s.tokens;
      EXPECT_TRUE(at::allclose(gradient(got), gradient(expected), 1e-9, 1e-11))
          << s.tokens;
    }
}

TEST(Attention, HasTheSameBitsWithoutAGraph) {
  const Dropout dropout = dropoutOf(0.5);
  const Tensor projected = at::randn({2, 130, 3 * 4 * 8});
  at::AutoGradMode differentiable(true);
  const Tensor withGraph = causalAttention(
      projected.detach().clone().set_requires_grad(true), 4, dropout);
  at::NoGradGuard noGraph;
  EXPECT_TRUE(withGraph.detach().equal(causalAttention(projected, 4, dropout)));
}
} // namespace
