//===- ParameterUse.cpp - Weight gradients apart from the rest ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/ParameterUse.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace chimera::runtime {
namespace {

using at::Tensor;

void addEmbedding(const ParameterUse &use, Tensor *gradient) {
  // As autograd does it: summed for each token in the order of the text.
  gradient[0].add_(at::embedding_dense_backward(
      use.outputGradient, use.input, gradient[0].size(0), /*padding_idx=*/-1,
      /*scale_grad_by_freq=*/false));
  gradient[1].add_(use.outputGradient.sum(0));
}

void addLinear(const ParameterUse &use, Tensor *gradient) {
  gradient[0].addmm_(use.outputGradient.t(), use.input);
  if (use.hasBias)
    gradient[1].add_(use.outputGradient.sum(0));
}

// The norm's output is y = s * w + b, its standardised input s scaled and
// shifted; the linear layer's is z = y W' + c, with gradient g. In terms of
// P = g' s and G, the sum of g's rows,
//
//   dW = g' y       = P * w + G b'     w's column i scales P's column i
//   dc              = G
//   dw = Σ (gW) * s = Σ W * P          over rows, M of them in the first form
//   db = Σ gW       = W' G
//
// so neither y nor gW, the gradient of y, need be kept.
void addNormedLinear(const ParameterUse &use,
                     const std::vector<Tensor> &parameters,
                     std::vector<Tensor> &gradients) {
  const Tensor &norm = parameters[use.parameter],
               &shift = parameters[use.parameter + 1],
               &weight = parameters[use.weight];
  Tensor *ofNorm = &gradients[use.parameter],
         *ofLinear = &gradients[use.weight];
  Tensor standardised =
      at::sub(use.input, use.mean).mul_(use.reciprocalDeviation);
  Tensor product =
      use.outputGradient.t().mm(standardised.view({-1, standardised.size(-1)}));
  Tensor sum = use.outputGradient.sum(0);
  ofNorm[0].add_(at::mul(weight, product).sum(0));
  ofNorm[1].addmv_(weight.t(), sum);
  ofLinear[0].addcmul_(product, norm).addr_(sum, shift);
  if (use.hasBias)
    ofLinear[1].add_(sum);
}

} // namespace

void addWeightGradient(const ParameterUse &use,
                       const std::vector<Tensor> &parameters,
                       std::vector<Tensor> &gradients) {
  at::NoGradGuard noGraph;
  Tensor *gradient = &gradients[use.parameter];
  switch (use.kind) {
  case ParameterUse::Kind::Embedding:
    return addEmbedding(use, gradient);
  case ParameterUse::Kind::Linear:
    return addLinear(use, gradient);
  case ParameterUse::Kind::NormedLinear:
    return addNormedLinear(use, parameters, gradients);
  }
}

} // namespace chimera::runtime
