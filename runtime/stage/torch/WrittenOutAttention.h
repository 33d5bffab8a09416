//===- WrittenOutAttention.h - Attention without a fused kernel -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_WRITTENOUTATTENTION_H
#define CHIMERA_RUNTIME_STAGE_TORCH_WRITTENOUTATTENTION_H

#include "runtime/stage/torch/Dropout.h"

namespace chimera::runtime {

/// As `attend` (Attention.h), for any device and type. For its backward it
/// keeps `projected` alone and makes the probabilities again; on a GPU with
/// dropout also the masks.
at::Tensor writtenOutAttention(const at::Tensor &projected, int64_t heads,
                               const Dropout &dropout);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_WRITTENOUTATTENTION_H
