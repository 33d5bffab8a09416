//===- AttentionMask.h - Masks as attention kernels read them ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fused kernels compute wrong gradients, or numbers that are not finite,
// for some masks that the formula of attention (Attention.h) allows. The
// functions here change such a mask, so that a kernel computes the formula.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONMASK_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONMASK_H

#include "runtime/model/graph/AttentionCall.h"

#include <limits>
#include <optional>

namespace chimera::runtime {

/// A mask hides a key by this number.
inline constexpr double kHides = -std::numeric_limits<double>::infinity();

/// The mask of a call as the host's kernel reads it, if there is one.
std::optional<at::Tensor> maskForHost(const AttentionCall &call);

/// The mask of a call as the memory-efficient kernel of a GPU reads it.
struct EfficientMask {
  /// [samples, heads, tokens, keys], of finite numbers. Undefined if the call
  /// has no mask. Uses no memory for dimensions in which the mask does not
  /// vary.
  at::Tensor numbers;
  /// Whether a token sees no key, [samples, heads, tokens, 1]; the first three
  /// dimensions may be 1. The kernel's output is wrong for such a token.
  at::Tensor isHidden;
};
EfficientMask maskForEfficientKernel(const AttentionCall &call);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_ATTENTIONMASK_H
