//===- TransformerStage.h - A transformer's layers with LibTorch -*- C++
//-*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a contiguous range of a model's layers with LibTorch's kernels and
// autograd, in the program's types. Weights and weight gradients are tensors
// over the caller's bytes, laid out by runtime/program/Layers.h: nothing is
// copied, and gradients accumulate in place.
//
// In bfloat16 a stage computes with the copy of the parameters, which each
// update makes anew. Products and weight gradients are summed in float32, and
// so are the statistics of norms and the loss from the logits on.
//
// The loss is a micro-batch's mean cross-entropy over its tokens in nats, as
// one float64 whatever the program's types.
//
// A stash owns all that it needs but the weights: also a copy of the stage's
// input, so that the caller may reuse that buffer once the forward is done. Its
// bytes are the sum of layerCost(...).stashBytes.
//
// README.md says how random numbers are derived.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H

#include "runtime/stage/Predictor.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/InitialValues.h"
#include "runtime/stage/torch/Place.h"

#include <memory>

namespace chimera::runtime {

/// Stage `stage` of the program, a StageFactory. Throws std::invalid_argument
/// where the program has no model, one that Layers.h refuses, a stage whose
/// layers or bytes are not the model's, tied parameters that are not its, or an
/// optimizer that it refuses.
std::unique_ptr<Stage> makeTransformerStage(const program::ProgramT &program,
                                            uint32_t stage);
/// In that place; its parameters begin with `values` unless they are null.
std::unique_ptr<Stage>
makeTransformerStage(const program::ProgramT &program, uint32_t stage,
                     const Place &place,
                     std::shared_ptr<const InitialValues> values = nullptr);

/// The whole model as one stage, first and last at once: `forward` takes tokens
/// and labels and gives the loss. Its weights are all layers' in order. Throws
/// like the above, but does not look at the program's stages or workers.
std::unique_ptr<Stage>
makeWholeModel(const program::ProgramT &program,
               std::shared_ptr<const InitialValues> values = nullptr);

/// The whole model as it says what comes next. Throws likewise.
std::unique_ptr<Predictor>
makeGpt2Predictor(const program::ProgramT &program,
                  const InitialValues *values = nullptr);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TRANSFORMERSTAGE_H
