//===- ParameterNodes.h - Operations that have parameters -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The places where parameters enter a computation, as nodes of autograd's
// graph. Parameters are no leaves of it: a node knows what to do with their
// gradient. It adds it to the caller's sum at once, in one product of matrices,
// or keeps what it needs for later (ParameterUse.h), for a split backward.
//
// Each works without a graph too, where gradients are off.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H

#include "runtime/stage/torch/ParameterUse.h"

#include <vector>

namespace chimera::runtime {

/// The parameters of a forward, and what its backward does with their
/// gradients. Lives as long as the graph.
struct Parameters {
  std::vector<at::Tensor> all; ///< the stage's, in its order
  /// Where they are added, by parameter; otherwise uses are kept.
  std::vector<GradientSum> sums = {};
  std::vector<ParameterUse> uses = {}; ///< in the order of the backward

  bool addsAtOnce() const { return !sums.empty(); }
};

/// The sum of a token's and its position's vector, [B, T, C]. `p` is the number
/// of the tokens' matrix, the positions' follows.
at::Tensor embed(Parameters &parameters, const at::Tensor &tokens, size_t p);

/// Of [B, T, in], with the weight `p` and the bias after it.
at::Tensor linear(Parameters &parameters, const at::Tensor &x, size_t p);

/// The same behind a norm, whose weight is `p` and its bias the next. The
/// linear layer's weight is `w`.
at::Tensor normedLinear(Parameters &parameters, const at::Tensor &x, size_t p,
                        size_t w, bool hasBias);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERNODES_H
