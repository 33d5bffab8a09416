//===- Gpt2.h - GPT-2's layers on tensors -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The computation of a range of layers, differentiable by LibTorch's autograd
// but for its parameters (ParameterNodes.h).
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_GPT2_H
#define CHIMERA_RUNTIME_STAGE_TORCH_GPT2_H

#include "runtime/program/Layout.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/ParameterNodes.h"
#include "runtime/stage/torch/Place.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace chimera::runtime {

class Gpt2 {
public:
  /// Layers [first, first + count) of the program's model. Throws
  /// std::invalid_argument if Layout.h refuses it or the range is none of its.
  Gpt2(const program::ProgramT &program, uint32_t first, uint32_t count,
       const Place &place = {});

  bool hasEmbedding() const { return first == 0; }
  bool hasHead() const { return first + count == program::layerCount(model); }
  /// Of parameters, and their gradients and averages.
  at::ScalarType weightType() const;
  /// Of activations and their gradients.
  at::ScalarType activationType() const;
  /// Of a loss.
  at::ScalarType lossType() const { return weightType(); }
  int64_t elements() const { return weightElements; }
  /// Of the parameters, and of their gradients.
  int64_t parameterBytes() const {
    return program::parameterBytes(types, weightElements);
  }
  /// Of the parameters with their copy.
  int64_t weightBytes() const {
    return parameterBytes() + program::copyBytes(types, weightElements);
  }

  /// Where a parameter lies in the flat weights, counted in elements.
  struct Slot : program::StageParameter {
    int64_t offset;
  };
  const std::vector<Slot> &slots() const { return parameterSlots; }

  const Place &where() const { return place; }

  /// Tensors over the bytes of parameters (or gradients), one for each slot.
  std::vector<at::Tensor> bind(const std::byte *parameters) const;
  /// Over those of weights, with which `run` computes: the copy where there is
  /// one.
  std::vector<at::Tensor> bindComputed(const std::byte *weights) const;

  /// Draws the weights as they are before the first step. The head's matrix of
  /// a tied model begins as the token embedding, wherever that is.
  void initialize(std::byte *weights) const;
  /// Has the copy say what the parameters say.
  void refreshCopy(std::byte *weights) const;

  /// `input`: tokens [B, T] on the embedding, else [B, T, C]. `labels`: [B, T]
  /// on the head, else undefined. `parameters` are those that it computes with.
  /// The result is [B, T, C], or the mean
  /// cross-entropy. Dropout acts where `dropped` says which micro-batch or part
  /// of one this is, and not at all without it.
  at::Tensor run(at::Tensor input, const at::Tensor &labels,
                 Parameters &parameters,
                 const std::optional<MicroBatch> &dropped) const;

private:
  std::vector<at::Tensor> bindAs(const std::byte *flat,
                                 program::DataType type) const;

  program::ModelT model;
  program::Types types;
  uint64_t seed;
  uint32_t first, count;
  Place place;
  int64_t weightElements = 0;
  std::vector<Slot> parameterSlots;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_GPT2_H
