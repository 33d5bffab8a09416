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

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_ATTENTION_H
#define CHIMERA_RUNTIME_STAGE_TORCH_ATTENTION_H

#include "runtime/stage/torch/Dropout.h"

namespace chimera::runtime {

/// What `heads` heads mix, [B, T, C], of queries, keys and values side by side,
/// [B, T, 3 C]. Dropout acts on the probabilities. By a fused kernel where the
/// device has one for these.
at::Tensor attend(const at::Tensor &projected, int64_t heads,
                  const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_ATTENTION_H
