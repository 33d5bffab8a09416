//===- ParameterUse.h - Weight gradients in a split backward ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a split backward, the input gradient runs first and the weight gradient
// later, from the tensors that are saved here. A use is an operation with
// parameters, with everything that their gradient needs:
//
//   kind           parameters                    input
//   Embedding      tokens', positions'           token numbers [B, T]
//   Linear         weight, bias                  [M, in]
//   NormedLinear   norm's weight and bias;       the norm's input [B, T, C],
//                  weight and maybe bias         with its mean and deviation
//
// B: samples; T: tokens in a sample; M = B * T; C: width.
//
// Each norm is followed by a linear layer, so the output gradient of the linear
// layer is enough for both: see addNormedLinear in ParameterUse.cpp.
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
  /// Indices among the stage's parameters. `parameter` is the first one;
  /// `weight` is the linear layer's weight, if there is one. The others follow
  /// directly after these. The weight of a tied head is the token embedding,
  /// far from the head's norm.
  size_t parameter = 0, weight = 0;
  bool hasBias = false; ///< of the linear layer

  /// From the forward. These tensors share memory with autograd's.
  at::Tensor input = {};
  at::Tensor mean = {}, reciprocalDeviation = {}; ///< NormedLinear, [B, T, 1]

  /// Known after the input gradient: [M, out], or [B, T, C] for an embedding.
  at::Tensor outputGradient = {};
};

/// Adds the gradients of the parameters of `use` to `sums`. `sums` and
/// `parameters` are indexed like the stage's parameters. `parameters` are the
/// ones that the forward used; their type may be narrower than that of the
/// sums. Temporary memory is limited to one row per token and a block of the
/// weight's rows.
void addWeightGradient(const ParameterUse &use,
                       const std::vector<at::Tensor> &parameters,
                       std::vector<GradientSum> &sums);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PARAMETERUSE_H
