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
// after the forward.
//
// Random.h says how random numbers are derived.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_TRANSFORMERSTAGE_H
#define CHIMERA_RUNTIME_MODEL_GPT2_TRANSFORMERSTAGE_H

#include "runtime/model/Stage.h"
#include "runtime/model/tensors/DevicePlacement.h"
#include "runtime/model/weights/InitialValues.h"

#include <memory>

namespace chimera::runtime {

/// Makes stage number `stage` of a program of a built-in GPT-2, on the device
/// `placement`. `values` are the initial parameters. If `values` is null, the
/// parameters are drawn at random. Throws std::invalid_argument if the program
/// has another model or none, if Layers.h rejects the model or the optimizer,
/// or if the stage's layers, its bytes or its tied parameters do not match the
/// model.
std::unique_ptr<Stage>
makeTransformerStage(const program::ProgramT &program, uint32_t stage,
                     const DevicePlacement &placement = {},
                     std::shared_ptr<const InitialValues> values = nullptr);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_TRANSFORMERSTAGE_H
