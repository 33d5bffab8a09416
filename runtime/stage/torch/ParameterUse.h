//===- ParameterUse.h - Weight gradients apart from the rest ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A split backward first makes the gradients of activations alone, and later
// the weight gradients from what is kept here. A use is a place where
// parameters enter the computation, with all that their gradient needs:
//
//   kind           parameters                    input
//   Embedding      tokens', positions'           token numbers [B, T]
//   Linear         weight, bias                  [M, in]
//   NormedLinear   norm's weight and bias;       the norm's input [B, T, C],
//                  weight and maybe bias         with its mean and deviation
//
// Each norm goes straight into a linear layer, so one output gradient serves
// both and the norm's own is not kept: see addWeightGradient.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERUSE_H
#define CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERUSE_H

#include "runtime/stage/torch/GradientSum.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

struct ParameterUse {
  enum class Kind { Embedding, Linear, NormedLinear };

  Kind kind = Kind::Embedding;
  /// Numbers among the stage's parameters: of the first; of the linear layer's
  /// weight, if there is one. Others follow theirs. A tied head's weight is the
  /// token embedding, far from its norm.
  size_t parameter = 0, weight = 0;
  bool hasBias = false; ///< of the linear layer

  /// Of the forward. They share autograd's memory.
  at::Tensor input = {};
  at::Tensor mean = {}, reciprocalDeviation = {}; ///< NormedLinear, [B, T, 1]

  /// Known after the input gradient. [M, out], or [B, T, C] of an embedding.
  at::Tensor outputGradient = {};
};

/// Adds the gradient of the parameters of `use` to `sums`; both lists are the
/// stage's, in its order. `parameters` are those of the forward,
/// whose type may be narrower than the sums'. Takes memory
/// for no more than the tokens' rows and a block of the weight's.
void addWeightGradient(const ParameterUse &use,
                       const std::vector<at::Tensor> &parameters,
                       std::vector<GradientSum> &sums);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERUSE_H
