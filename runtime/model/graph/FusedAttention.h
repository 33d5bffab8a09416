//===- FusedAttention.h - LibTorch's fused attention kernels ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention by one kernel of LibTorch, which never stores all probabilities.
// The kernels are those that scaled_dot_product_attention uses. They are called
// by name, so that their backward needs only what a graph saves: the output and
// logSumExp.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_FUSEDATTENTION_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_FUSEDATTENTION_H

#include "runtime/model/graph/Attention.h"

namespace chimera::runtime {

/// A kernel for this call, or None if the device has no kernel for it. The same
/// call always gets the same kernel. May wait for a GPU the first time that
/// something is dropped there.
enum class AttentionKernel { None, Cpu, Efficient, Flash, Cudnn };
AttentionKernel fusedKernelFor(const AttentionCall &call,
                               const Dropout &dropout);

/// attention() and attentionBackward() by `kernel`, which is fusedKernelFor the
/// same call and not None. Tensors may have other strides than there.
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
