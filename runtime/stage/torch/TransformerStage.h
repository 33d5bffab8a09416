//===- TransformerStage.h - GPT-2's layers in LibTorch ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage that runs a contiguous range of GPT-2's layers with LibTorch's
// kernels and autograd, in the program's types. Weights and weight gradients
// are tensors over the caller's bytes, laid out by runtime/program/Layers.h.
// Nothing is copied, and gradients accumulate in place.
//
// In bfloat16, a stage computes with a bfloat16 copy of the parameters. Every
// update makes the copy again. Products and weight gradients are summed in
// float32. Statistics of norms, and the computation from the logits to the
// loss, are in float32 too.
//
// The loss is the mean cross-entropy per token of a micro-batch, in nats. It is
// one float64, whatever the program's types are.
//
// A stash owns everything that the backward needs except the weights. The stash
// has a copy of the stage's input, so the caller may reuse the input's buffer
// after the forward. The size of a stash is the sum of
// layerCost(...).stashBytes over the stage's layers.
//
// Random.h says how random numbers are derived.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H

#include "runtime/stage/Predictor.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/DevicePlacement.h"
#include "runtime/stage/torch/InitialValues.h"

#include <memory>

namespace chimera::runtime {

/// Makes stage number `stage` of the program. This function can be used as a
/// StageFactory. Throws std::invalid_argument if the program has no model, if
/// Layers.h rejects the model or the optimizer, or if the stage's layers, its
/// bytes or its tied parameters do not match the model.
std::unique_ptr<Stage> makeTransformerStage(const program::ProgramT &program,
                                            uint32_t stage);
/// Like makeTransformerStage above, but on the device `placement`. `values` are
/// the initial parameters. If `values` is null, the parameters are drawn at
/// random.
std::unique_ptr<Stage>
makeTransformerStage(const program::ProgramT &program, uint32_t stage,
                     const DevicePlacement &placement,
                     std::shared_ptr<const InitialValues> values = nullptr);

/// Makes one stage that has the whole model. It is both the first and the last
/// stage: `forward` takes tokens and labels and computes the loss. Its weights
/// are the weights of all layers, in the order of the layers. Throws like
/// makeTransformerStage, but does not check the program's stages and workers.
std::unique_ptr<Stage>
makeWholeModel(const program::ProgramT &program,
               std::shared_ptr<const InitialValues> values = nullptr);

/// Makes a next-token predictor of the whole model. Throws like
/// makeTransformerStage.
std::unique_ptr<Predictor>
makeGpt2Predictor(const program::ProgramT &program,
                  const InitialValues *values = nullptr);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H
