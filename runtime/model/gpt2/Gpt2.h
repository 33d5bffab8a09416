//===- Gpt2.h - GPT-2's layers on tensors -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The computation of a range of GPT-2's layers. LibTorch's autograd
// differentiates it, except for the parameters (ParameterNodes.h).
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GPT2_GPT2_H
#define CHIMERA_RUNTIME_MODEL_GPT2_GPT2_H

#include "runtime/model/Stage.h"
#include "runtime/model/gpt2/ParameterNodes.h"
#include "runtime/model/tensors/DevicePlacement.h"
#include "runtime/model/weights/StageWeights.h"
#include "runtime/program/Layers.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace chimera::runtime {

class Gpt2 {
public:
  /// Layers [first, first + count) of the program's model. Throws
  /// std::invalid_argument if Layers.h rejects the model or the model does not
  /// have these layers.
  Gpt2(const program::ProgramT &program, uint32_t first, uint32_t count,
       const DevicePlacement &placement = {});

  bool hasEmbedding() const { return first == 0; }
  bool hasHead() const { return first + count == model.layers + 2; }
  /// The type in which the loss is computed.
  at::ScalarType lossType() const { return held.type(); }

  const StageWeights &weights() const { return held; }

  /// Computes the layers on `input`: tokens [samples, tokens] for the
  /// embedding, else activations [samples, tokens, width]. The layers use
  /// `parameters`. `labels` [samples, tokens] are used only by the head.
  /// Returns activations [samples, tokens, width] if there is no head. With the
  /// head, returns the mean cross-entropy or, if `labels` is undefined, the
  /// logits. `dropped` is the micro-batch (or part) whose dropout masks are
  /// used. If `dropped` is empty, there is no dropout.
  at::Tensor run(at::Tensor input, const at::Tensor &labels,
                 Parameters &parameters,
                 const std::optional<MicroBatch> &dropped) const;

private:
  program::ModelT model;
  StageWeights held;
  uint64_t seed;
  uint32_t first, count;
  DevicePlacement placement;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GPT2_GPT2_H
