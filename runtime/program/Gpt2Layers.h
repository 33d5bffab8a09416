//===- Gpt2Layers.h - The tensors and costs of GPT-2's layers ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layers of models of the architecture "gpt2". Layers.h describes them.
// runtime/stage/torch/Gpt2.h computes these layers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_GPT2LAYERS_H
#define CHIMERA_RUNTIME_PROGRAM_GPT2LAYERS_H

#include "runtime/program/Layers.h"

namespace chimera::program {

/// layerParameters and layerCost (Layers.h) for a model of this architecture.
std::vector<Parameter> gpt2Parameters(const ModelT &model, uint32_t layer);
LayerCost gpt2Cost(const ModelT &model, Types types, uint32_t microBatchSize,
                   uint32_t layer);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_GPT2LAYERS_H
