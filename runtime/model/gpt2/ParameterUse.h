//===- ParameterUse.h - Weight gradients in a split backward ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a split backward, the input gradient runs first. It saves a ParameterUse
// for each operation with parameters. The weight gradient runs later and reads
// them. A ParameterUse has the tensors that the gradients of the operation's
// parameters need:
//
//   kind           parameters                    input
//   Embedding      token embedding,              token numbers [B, T]
//                  position embedding
//   Linear         weight, bias                  [M, in]
//   NormedLinear   norm's weight and bias;       the norm's input [B, T, C],
//                  linear layer's weight         its mean and its deviation
//                  and maybe bias
//
// B: samples; T: tokens in a sample; M = B * T; C: width; in: number of inputs
// of the linear layer.
//
// Each norm is followed by a linear layer, so the output gradient of the linear
// layer is enough for both: see addNormedLinear in ParameterUse.cpp.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERUSE_H
#define CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERUSE_H

#include "runtime/model/tensors/GradientSum.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

struct ParameterUse {
  enum class Kind { Embedding, Linear, NormedLinear };

  Kind kind = Kind::Embedding;
  /// Indices of parameters of the stage. `parameter` is the operation's first
  /// parameter; its second parameter has the next index. `weight` is the weight
  /// of the linear layer; its bias has the next index. The weight of a tied
  /// head is the token embedding, so its index may be far from that of the
  /// head's norm.
  size_t parameter = 0, weight = 0;
  bool hasBias = false; ///< whether the linear layer has one

  /// Tensors of the forward. They share memory with tensors that autograd
  /// saved.
  at::Tensor input = {};
  at::Tensor mean = {}, reciprocalDeviation = {}; ///< NormedLinear, [B, T, 1]

  /// Known after the input gradient: [M, out], or [B, T, C] for an embedding.
  at::Tensor outputGradient = {};
};

/// Adds the gradients of the parameters of `use` to `sums`. `sums` and
/// `parameters` are indexed like the stage's parameters. `parameters` are the
/// tensors that the forward used. Their type may be narrower than the type of
/// the sums. Temporary memory is limited: it has one row for each token, and a
/// block of the weight's rows.
void addWeightGradient(const ParameterUse &use,
                       const std::vector<at::Tensor> &parameters,
                       std::vector<GradientSum> &sums);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_PARAMETERUSE_H
