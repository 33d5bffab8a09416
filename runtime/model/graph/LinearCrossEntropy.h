//===- LinearCrossEntropy.h - The last product and the loss -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cross-entropy of a linear layer with many classes, forward and backward,
// as packages call it (chimera::linear_cross_entropy and
// chimera::linear_cross_entropy_backward in operators.txt). The logits are
// computed for some rows at a time, so the logits of all rows are never in
// memory together. The backward computes them again, and it can compute the
// loss from them: then a training step needs no forward, and has the same
// number of matrix products as a step that keeps the logits.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_LINEARCROSSENTROPY_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_LINEARCROSSENTROPY_H

#include "runtime/model/tensors/GradientSum.h"

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// The operands of a loss:
///
///   logits = input · weightᵀ + bias
///   loss = sum over the rows that count: -log softmax(logits)[label]
///
/// The logits have the type of the operands. Their softmax is computed in
/// float32 if this type is bfloat16.
struct LinearCrossEntropyCall {
  at::Tensor input;  ///< [rows, width]
  at::Tensor weight; ///< [classes, width]
  at::Tensor bias;   ///< [classes], or undefined
  at::Tensor labels; ///< int64 [rows], classes
  int64_t ignored;   ///< a row with this label does not count
  bool isMean;       ///< whether the loss is divided by the rows that count
};

/// The loss, a float32 or float64. Throws std::invalid_argument if the operands
/// have other shapes or types than the comments above say, and c10::Error if a
/// label is no class.
at::Tensor linearCrossEntropy(const LinearCrossEntropyCall &call);

/// The results of a backward, or those of them that a caller wants.
struct LinearCrossEntropyResults {
  bool wantsInput = true, wantsWeight = true, wantsBias = true,
       wantsLoss = true;
  /// If there is one, the gradient of the weight is added to it, and `weight`
  /// stays undefined.
  GradientSum *weightSum = nullptr;

  /// Gradients, of the types of the operands.
  at::Tensor input = {}, weight = {}, bias = {};
  at::Tensor loss = {};
};

/// Computes the results that `results` asks for. `gradient`, one number, is the
/// gradient of the loss. Throws like linearCrossEntropy().
void linearCrossEntropyBackward(const at::Tensor &gradient,
                                const LinearCrossEntropyCall &call,
                                LinearCrossEntropyResults &results);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_LINEARCROSSENTROPY_H
