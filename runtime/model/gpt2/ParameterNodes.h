//===- ParameterNodes.h - Operations that have parameters -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations with parameters, each as one custom node in autograd's graph.
// Parameters are not leaves of the graph: the node itself handles their
// gradients. In a whole backward, the node adds each gradient to the caller's
// sum at once, without a temporary. In a split backward, the node saves the
// tensors that the gradients need (ParameterUse.h).
//
// If autograd is off, the operations run without a graph.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERNODES_H
#define CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERNODES_H

#include "runtime/model/gpt2/ParameterUse.h"

#include <vector>

namespace chimera::runtime {

/// The parameters of a forward, and the way in which its backward handles their
/// gradients. The struct must live as long as the graph.
struct Parameters {
  std::vector<at::Tensor> all; ///< parameters of the stage, in order
  /// The gradient sum of each parameter. If this is empty, the backward fills
  /// `uses` and computes no gradients of parameters.
  std::vector<GradientSum> sums = {};
  std::vector<ParameterUse> uses = {}; ///< in the order of the backward

  bool accumulatesImmediately() const { return !sums.empty(); }
};

/// The sum of token embedding and position embedding, [samples, tokens, width].
/// The token embedding is parameters.all[p], the position embedding
/// parameters.all[p + 1].
at::Tensor embed(Parameters &parameters, const at::Tensor &tokens, size_t p);

/// A linear layer on [samples, tokens, in]. Its weight is parameters.all[p],
/// its bias parameters.all[p + 1].
at::Tensor linear(Parameters &parameters, const at::Tensor &x, size_t p);

/// A norm followed by a linear layer. The norm's weight is parameters.all[p],
/// its bias parameters.all[p + 1]. The linear layer's weight is
/// parameters.all[w], its bias (if any) parameters.all[w + 1].
at::Tensor normedLinear(Parameters &parameters, const at::Tensor &x, size_t p,
                        size_t w, bool hasBias);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERNODES_H
