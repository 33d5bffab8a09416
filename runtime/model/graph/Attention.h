//===- Attention.h - The attention call of a graph --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scaled dot-product attention, forward and backward, as packages call it
// (chimera::attention and chimera::attention_backward in operators.txt). If the
// device has a fused kernel for a call, the kernel computes it
// (FusedAttention.h). Otherwise attention is computed for a few heads at a
// time, and the backward computes the probabilities again.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTION_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTION_H

#include "runtime/model/graph/AttentionCall.h"

#include <array>

namespace chimera::runtime {

/// Throws std::invalid_argument if the operands have other shapes or types than
/// the comments above say.
AttentionResult attention(const AttentionCall &call, const Dropout &dropout);

/// The gradients of query, key and value, in memory [samples, tokens, heads,
/// width]. `gradient` is the gradient of the output. Requires the result of
/// attention() for the same call and dropout. Throws std::invalid_argument like
/// attention().
std::array<at::Tensor, 3> attentionBackward(const at::Tensor &gradient,
                                            const AttentionCall &call,
                                            const AttentionResult &result,
                                            const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTION_H
