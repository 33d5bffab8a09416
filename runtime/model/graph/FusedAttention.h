//===- FusedAttention.h - LibTorch's fused attention kernels ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention by one kernel of LibTorch, which never stores all probabilities:
// its backward computes them again. The kernels are those that
// scaled_dot_product_attention uses. They are called by name, so that the
// backward needs only the values that a graph saves: the output and logSumExp.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_FUSEDATTENTION_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_FUSEDATTENTION_H

#include "runtime/model/graph/AttentionCall.h"

#include <array>

namespace chimera::runtime {

/// LibTorch's kernels: that of the host, and three of GPUs.
enum class AttentionKernel { None, Cpu, Efficient, Flash, Cudnn };

/// The same call with one head of keys and values for each head of queries, as
/// the kernels of GPUs take it.
AttentionCall withKeysOfEachHead(const AttentionCall &call);
/// The sum of a gradient [samples, heads, keys, width] over the heads that
/// share keys.
at::Tensor sumOverHeads(const at::Tensor &gradient, int64_t keyHeads);

/// A kernel for this call, or None if the device has no kernel for it. The same
/// call always gets the same kernel. The first call with dropout or with a mask
/// on a GPU waits for the GPU.
AttentionKernel fusedKernelFor(const AttentionCall &call,
                               const Dropout &dropout);

/// attention() and attentionBackward(), but the results may have other strides.
/// `kernel` is the result of fusedKernelFor for the same call. It must not be
/// None.
AttentionResult fusedAttention(AttentionKernel kernel,
                               const AttentionCall &call,
                               const Dropout &dropout);
std::array<at::Tensor, 3> fusedAttentionBackward(AttentionKernel kernel,
                                                 const at::Tensor &gradient,
                                                 const AttentionCall &call,
                                                 const AttentionResult &result,
                                                 const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_FUSEDATTENTION_H
