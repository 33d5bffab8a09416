//===- AttentionCall.h - Operands and results of attention ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONCALL_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONCALL_H

#include "runtime/model/tensors/Dropout.h"

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// The operands of an attention:
///
///   output = dropout(softmax(scale · query · keyᵀ + mask)) · value
///
/// Each head of `key` and `value` serves heads / keyHeads heads of `query`. A
/// token whose scores are all -∞ has the output 0.
struct AttentionCall {
  at::Tensor query;      ///< [samples, heads, tokens, width]
  at::Tensor key, value; ///< [samples, keyHeads, keys, width]
  /// Undefined, or numbers that are added to the scores [samples, heads,
  /// tokens, keys]. Has two or four dimensions, which may be 1.
  at::Tensor mask;
  bool isCausal = false; ///< whether token i sees only the keys 0 to i
  double scale = 1;
  DropoutSite site = 0; ///< for dropout
};

struct AttentionResult {
  at::Tensor output; ///< like `query`, with the same order of strides
  /// Of the scores, [samples, heads, tokens]. If there is a mask, a number may
  /// have been subtracted from all scores of a token.
  at::Tensor logSumExp;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONCALL_H
