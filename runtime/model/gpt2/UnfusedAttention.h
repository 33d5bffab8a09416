//===- UnfusedAttention.h - Attention without a fused kernel ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_UNFUSEDATTENTION_H
#define CHIMERA_RUNTIME_MODEL_GPT2_UNFUSEDATTENTION_H

#include "runtime/model/tensors/Dropout.h"

namespace chimera::runtime {

/// Computes causalAttention (Attention.h) for any device and type, without a
/// fused kernel. Saves only `projected` for the backward, which computes the
/// probabilities again. On a GPU, saves the masks of dropout too.
at::Tensor unfusedAttention(const at::Tensor &projected, int64_t heads,
                            const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_UNFUSEDATTENTION_H
