//===- Gpt2Layers.cpp - The tensors and costs of GPT-2's layers -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Gpt2Layers.h"

#include "runtime/program/Saturated.h"

#include <algorithm>
#include <cmath>

namespace chimera::program {
namespace {

// GPT-2's initialisation is N(0, 0.02²). The model has L blocks, and so 2L
// projections whose results are added to the residual stream. Their deviation
// is divided by sqrt(2L), so that the variance of the stream does not grow with
// the number of blocks.
constexpr double kDeviation = 0.02;

constexpr char kHeadWeight[] = "head.weight";

Parameter normal(std::string name, std::vector<int64_t> shape,
                 double deviation = kDeviation) {
  return {std::move(name), std::move(shape), Initialization::Normal, deviation};
}
Parameter zeros(std::string name, std::vector<int64_t> shape) {
  return {std::move(name), std::move(shape), Initialization::Zeros};
}
Parameter ones(std::string name, std::vector<int64_t> shape) {
  return {std::move(name), std::move(shape), Initialization::Ones};
}

// The next functions compute the bytes of the stash of each layer: the tensors
// that the layer keeps from the forward to the backward, in the order of the
// forward. m is the number of tokens in a micro-batch, C the width, and e the
// bytes of an element. Masks have one byte per element.

int64_t embeddingStash(const ModelT &model, int64_t m) {
  int64_t tokens = saturatedProduct({m, 8});
  int64_t mask = model.dropout > 0 ? saturatedProduct({m, model.width}) : 0;
  return saturatedSum({tokens, mask});
}

// The bytes of an element of statistics and losses. Their type has at least
// four bytes.

int64_t statisticBytes(int64_t e) { return std::max<int64_t>(e, 4); }

int64_t blockStash(const ModelT &model, int64_t m, int64_t e) {
  // 8 tensors of width C: the input of the block, the output of norm 1, the
  // queries, the keys, the values, the output of the attention heads, the
  // residual stream after the attention, and the output of norm 2. The input
  // and the output of the GELU have width 4C each, so the sum is 16C.
  int64_t activations = saturatedProduct({16, m, model.width, e});
  // Two norms have a mean and a reciprocal deviation for each token.
  int64_t norms = saturatedProduct({4, m, statisticBytes(e)});
  if (model.dropout == 0)
    // The fused attention keeps one log-sum-exp for each row of scores.
    return saturatedSum(
        {activations, norms,
         saturatedProduct({m, model.heads, statisticBytes(e)})});
  // The masks of the two dropouts outside of the attention. The dropout mask of
  // the attention is not kept, because the backward of the attention recomputes
  // its probabilities.
  int64_t masks = saturatedProduct({2, m, model.width});
  return saturatedSum({activations, norms, masks});
}

int64_t headStash(const ModelT &model, int64_t m, int64_t e) {
  // In the order of the terms below: the head's input and the norm's output;
  // the norm's mean and reciprocal deviation; log-probabilities; labels; the
  // divisor of the loss.
  const int64_t s = statisticBytes(e);
  return saturatedSum({saturatedProduct({2, m, model.width, e}),
                       saturatedProduct({2, m, s}),
                       saturatedProduct({m, model.vocabulary, s}),
                       saturatedProduct({m, 8}), s});
}

// The next functions compute the bytes of the weight stash of each layer: the
// tensors that the layer keeps from the input gradient to the weight gradient.
// For a linear layer, these are its input and the gradient of its output. For a
// norm, these are its input and its statistics, because its output can be
// recomputed.

int64_t embeddingWeightStash(const ModelT &model, int64_t m, int64_t e) {
  return saturatedSum(
      {saturatedProduct({m, 8}), saturatedProduct({m, model.width, e})});
}

int64_t blockWeightStash(const ModelT &model, int64_t m, int64_t e) {
  // In units of the width. Inputs: 1 for each of the two norms, 1 for the
  // projection of the attention, 4 for the projection of the MLP. Gradients: 3
  // for queries, keys and values, 4 for the first layer of the MLP, 1 for each
  // of the two projections.
  return saturatedSum(
      {saturatedProduct({2 + 1 + 4 + 3 + 4 + 2, m, model.width, e}),
       saturatedProduct({4, m, statisticBytes(e)})});
}

int64_t headWeightStash(const ModelT &model, int64_t m, int64_t e) {
  return saturatedSum({saturatedProduct({m, model.width, e}),
                       saturatedProduct({m, model.vocabulary, e}),
                       saturatedProduct({2, m, statisticBytes(e)})});
}

} // namespace

std::vector<Parameter> gpt2Parameters(const ModelT &model, uint32_t layer) {
  const int64_t width = model.width;
  if (layer == 0)
    return {normal("token_embedding", {model.vocabulary, width}),
            normal("position_embedding", {model.context, width})};
  if (layer == model.layers + 1)
    return {ones("norm.weight", {width}), zeros("norm.bias", {width}),
            normal(kHeadWeight, {model.vocabulary, width})};
  const double residual = kDeviation / std::sqrt(2.0 * model.layers);
  return {ones("norm1.weight", {width}),
          zeros("norm1.bias", {width}),
          normal("attention.weight", {3 * width, width}),
          zeros("attention.bias", {3 * width}),
          normal("attention_projection.weight", {width, width}, residual),
          zeros("attention_projection.bias", {width}),
          ones("norm2.weight", {width}),
          zeros("norm2.bias", {width}),
          normal("mlp.weight", {4 * width, width}),
          zeros("mlp.bias", {4 * width}),
          normal("mlp_projection.weight", {width, 4 * width}, residual),
          zeros("mlp_projection.bias", {width})};
}

LayerCost gpt2Cost(const ModelT &model, Types types, uint32_t microBatchSize,
                   uint32_t layer) {
  const int64_t e = bytesOf(types.activations);
  const int64_t m = saturatedProduct({microBatchSize, model.context});
  const int64_t c = model.width;
  // A multiply-add of a matrix product counts as two operations. Other
  // operations are not counted. Only for the embedding, which has no matrix
  // products, additions are counted. For each product of the forward, the
  // backward has two products: one for the input gradient and one for the
  // weight gradient.
  int64_t forward, stash, weightStash;
  if (layer == 0) {
    forward = saturatedProduct({m, c});
    stash = embeddingStash(model, m);
    weightStash = embeddingWeightStash(model, m, e);
  } else if (layer == model.layers + 1) {
    forward = saturatedProduct({2, m, c, model.vocabulary});
    stash = headStash(model, m, e);
    weightStash = headWeightStash(model, m, e);
  } else {
    // C is the width and T the context. Queries, keys, values and the
    // projection have 4C² multiply-adds per token, and the MLP has 8C². The
    // scores have TC, and the weighted sum of values has TC. The full matrix of
    // scores is counted, although attention is causal.
    forward = saturatedSum({saturatedProduct({24, m, c, c}),
                            saturatedProduct({4, m, model.context, c})});
    stash = blockStash(model, m, e);
    weightStash = blockWeightStash(model, m, e);
  }
  return {forward, forward, forward, stash, weightStash};
}

} // namespace chimera::program
