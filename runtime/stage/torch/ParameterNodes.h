//===- ParameterNodes.h - Operations that have parameters -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations with parameters, each as one custom node in autograd's graph.
// Parameters are not leaves of the graph: the node itself handles their
// gradient. Either it adds the gradient to the caller's sum at once, in one
// matrix product. Or, in a split backward, it saves the tensors that the
// gradient needs (ParameterUse.h).
//
// If autograd is off, the operations run without a graph.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H

#include "runtime/stage/torch/ParameterUse.h"

#include <vector>

namespace chimera::runtime {

/// The parameters of a forward, and how its backward handles their gradients.
/// It must live as long as the graph.
struct Parameters {
  std::vector<at::Tensor> all; ///< the stage's, in order
  /// The gradient sums, by parameter. If empty, uses are saved instead.
  std::vector<GradientSum> sums = {};
  std::vector<ParameterUse> uses = {}; ///< in the order of the backward

  bool accumulatesImmediately() const { return !sums.empty(); }
};

/// The sum of token embedding and position embedding, [samples, tokens, width].
/// `p` is the number of the token embedding; the position embedding is `p` + 1.
at::Tensor embed(Parameters &parameters, const at::Tensor &tokens, size_t p);

/// A linear layer on [samples, tokens, in]. Its weight is `p`, its bias `p` +
/// 1.
at::Tensor linear(Parameters &parameters, const at::Tensor &x, size_t p);

/// A norm followed by a linear layer. The norm's weight is `p`, its bias `p` +
/// 1. The linear layer's weight is `w`, its bias (if any) `w` + 1.
at::Tensor normedLinear(Parameters &parameters, const at::Tensor &x, size_t p,
                        size_t w, bool hasBias);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H
