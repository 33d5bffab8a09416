//===- Attention.h - Causal self-attention on tensors -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_ATTENTION_H
#define CHIMERA_RUNTIME_MODEL_GPT2_ATTENTION_H

#include "runtime/model/tensors/Dropout.h"

namespace chimera::runtime {

/// Causal self-attention with `heads` heads. `projected` has queries, keys and
/// values side by side, [samples, tokens, 3 width]. Returns [samples, tokens,
/// width]. Dropout acts on the probabilities. Uses a fused kernel if the device
/// has one for these operands.
at::Tensor causalAttention(const at::Tensor &projected, int64_t heads,
                           const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_ATTENTION_H
