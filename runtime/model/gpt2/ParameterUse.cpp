//===- ParameterUse.cpp - Weight gradients in a split backward ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/ParameterUse.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace chimera::runtime {
namespace {

using at::Tensor;

/// The maximum number of elements of a block of rows of a weight. The gradient
/// of a block needs temporary memory.
constexpr int64_t kGradientBlockElements = 1 << 20;

/// addEmbedding on a GPU. index_put_ sorts the tokens. So, as on the host, the
/// gradients of each token are summed in the order of the text. The host's
/// method cannot be used, because it would have to wait until the GPU knows the
/// number of distinct tokens.
void addEmbeddingOnGpu(const ParameterUse &use, GradientSum *sums) {
  const int64_t width = use.outputGradient.size(-1);
  Tensor rows = use.outputGradient.reshape({-1, width});
  sums[0].gradient.index_put_({use.input.reshape({-1})},
                              rows.to(sums[0].gradient.scalar_type()),
                              /*accumulate=*/true);
}

/// Adds the gradients of an embedding. Like autograd, this function sums the
/// gradients of each token in the order of the text, and then adds this sum.
/// Unlike autograd, it needs no memory for tokens that do not occur in the
/// text.
void addEmbedding(const ParameterUse &use, GradientSum *sums) {
  if (!sums[0].hasBegun)
    sums[0].gradient.zero_();
  sums[0].hasBegun = true;
  sums[1].addRows(use.outputGradient);
  if (use.outputGradient.is_cuda())
    return addEmbeddingOnGpu(use, sums);
  auto [tokens, numbers, counts] =
      at::_unique2(use.input, /*sorted=*/true, /*return_inverse=*/true);
  Tensor rows = at::embedding_dense_backward(
      use.outputGradient.to(sums[0].gradient.scalar_type()), numbers,
      tokens.size(0), /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
  sums[0].gradient.index_add_(0, tokens, rows);
}

void addLinear(const ParameterUse &use, GradientSum *sums) {
  sums[0].addProduct(use.outputGradient.t(), use.input);
  if (use.hasBias)
    sums[1].addRows(use.outputGradient);
}

// The norm's output is y = s * w + b, where s is its standardised input, w its
// weight and b its bias. The linear layer's output is z = y W' + c, where W is
// its weight and c its bias. The gradient of z is g. A prime means transposed,
// and * is elementwise. Let P = g' s, let Σ be the sum of the rows of a matrix,
// and let G = Σ g. Then
//
//   dW = g' y       = P * w + G b'     element i of w scales column i of P
//   dc              = G
//   dw = Σ (gW) * s = Σ W * P
//   db = Σ gW       = W' G
//
// So neither y nor its gradient gW must be saved. P is computed in blocks of
// rows, since W may have a row for each word of the vocabulary. Everything
// except the factors of P has the type of the sums.
void addNormedLinear(const ParameterUse &use,
                     const std::vector<Tensor> &parameters,
                     std::vector<GradientSum> &sums) {
  const Tensor &norm = parameters[use.parameter],
               &shift = parameters[use.parameter + 1],
               &weight = parameters[use.weight];
  GradientSum *ofNorm = &sums[use.parameter], *ofLinear = &sums[use.weight];
  const Tensor &gradient = use.outputGradient;
  const at::ScalarType type = ofLinear[0].gradient.scalar_type();
  Tensor standardised = at::sub(use.input, use.mean)
                            .mul_(use.reciprocalDeviation)
                            .view({-1, use.input.size(-1)})
                            .to(gradient.scalar_type());
  Tensor sum = gradient.sum(0, /*keepdim=*/false, type);
  const int64_t rows = weight.size(0), width = weight.size(1);
  const int64_t block = std::max<int64_t>(1, kGradientBlockElements / width);
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t count = std::min(block, rows - first);
    Tensor product =
        productAs(type, gradient.narrow(1, first, count).t(), standardised);
    Tensor rowsOfWeight = weight.narrow(0, first, count).to(type);
    Tensor sumOfRows = sum.narrow(0, first, count);
    ofNorm[0].add(at::mul(rowsOfWeight, product).sum(0));
    ofNorm[1].add(at::mv(rowsOfWeight.t(), sumOfRows));
    GradientSum ofRows{ofLinear[0].gradient.narrow(0, first, count),
                       ofLinear[0].hasBegun};
    ofRows.add(product.mul_(norm));
    ofRows.gradient.addr_(sumOfRows, shift.to(type));
  }
  ofLinear[0].hasBegun = true;
  if (use.hasBias)
    ofLinear[1].add(sum);
}

} // namespace

void addWeightGradient(const ParameterUse &use,
                       const std::vector<Tensor> &parameters,
                       std::vector<GradientSum> &sums) {
  at::NoGradGuard noGraph;
  switch (use.kind) {
  case ParameterUse::Kind::Embedding:
    return addEmbedding(use, &sums[use.parameter]);
  case ParameterUse::Kind::Linear:
    return addLinear(use, &sums[use.parameter]);
  case ParameterUse::Kind::NormedLinear:
    return addNormedLinear(use, parameters, sums);
  }
}

} // namespace chimera::runtime
