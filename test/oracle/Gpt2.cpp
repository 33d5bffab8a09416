//===- Gpt2.cpp - GPT-2 as plain LibTorch code ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/oracle/Gpt2.h"

#include "runtime/model/tensors/Dropout.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using at::Tensor;

namespace {

/// One layer of the model: its parameters and its dropout.
struct Layer {
  const Gpt2Parameters &parameters;
  uint32_t number;
  Dropout dropout;

  const Tensor &parameter(uint32_t index) const {
    return parameters.at({number, index});
  }
  /// The norm whose scale is parameter `p`.
  Tensor norm(const Tensor &x, uint32_t p) const {
    return at::layer_norm(x, {x.size(-1)}, parameter(p), parameter(p + 1),
                          /*eps=*/1e-5);
  }
  /// The linear layer whose weight is parameter `p`.
  Tensor linear(const Tensor &x, uint32_t p) const {
    return at::linear(x, parameter(p), parameter(p + 1));
  }

  /// `x` with dropped elements set to zero and the others scaled.
  Tensor dropped(const Tensor &x, DropoutSite site) const {
    return dropout.isActive()
               ? x * dropout.mask(site, x.numel(), 0, x.sizes(), x.device()) *
                     dropout.scale()
               : x;
  }

  Tensor attention(const Tensor &x, int64_t heads) const {
    const int64_t samples = x.size(0), tokens = x.size(1), width = x.size(2);
    std::vector<Tensor> parts = linear(x, 2).split(width, -1);
    for (Tensor &part : parts)
      part = part.view({samples, tokens, heads, width / heads}).transpose(1, 2);
    const Tensor future =
        at::ones({tokens, tokens}, at::kBool).triu(/*diagonal=*/1);
    const Tensor scores =
        (parts[0].matmul(parts[1].transpose(2, 3)) /
         std::sqrt(static_cast<double>(width) / static_cast<double>(heads)))
            .masked_fill(future, -std::numeric_limits<double>::infinity());
    const Tensor mixed =
        dropped(scores.softmax(-1), kAttention).matmul(parts[2]);
    return linear(mixed.transpose(1, 2).reshape(x.sizes()), 4);
  }

  Tensor block(const Tensor &x, int64_t heads) const {
    const Tensor y =
        x + dropped(attention(norm(x, 0), heads), kAttentionResidual);
    const Tensor hidden = at::gelu(linear(norm(y, 6), 8), "tanh");
    return y + dropped(linear(hidden, 10), kMlpResidual);
  }
};

} // namespace

Tensor chimera::runtime::test::gpt2Loss(
    const program::Gpt2Sizes &sizes, uint64_t seed,
    const Gpt2Parameters &parameters, const Tensor &tokens,
    const Tensor &labels, MicroBatch microBatch, at::ScalarType lossType) {
  auto layer = [&](uint32_t number) {
    return Layer{parameters, number,
                 Dropout(sizes.dropout, seed, number, microBatch,
                         /*kernels=*/nullptr)};
  };
  const Layer embedding = layer(0);
  Tensor x = embedding.dropped(at::embedding(embedding.parameter(0), tokens) +
                                   embedding.parameter(1),
                               kEmbedding);
  for (uint32_t number = 1; number <= sizes.layers; ++number)
    x = layer(number).block(x, sizes.heads);
  const Layer head = layer(sizes.layers + 1);
  const auto own = parameters.find({head.number, 2});
  const Tensor &classes =
      own == parameters.end() ? embedding.parameter(0) : own->second;
  const Tensor logits = at::linear(head.norm(x, 0), classes);
  return at::cross_entropy_loss(logits.flatten(0, 1).to(lossType),
                                labels.flatten());
}
