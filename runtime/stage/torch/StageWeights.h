//===- StageWeights.h - A stage's weights as tensors ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters of a range of a model's layers lie one behind another, as
// runtime/program/Layers.h orders them, in bytes that somebody else owns; so do
// their gradients, and the optimizer's averages. Behind the parameters there
// may be a copy of them in another type, with which a stage computes.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_STAGEWEIGHTS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_STAGEWEIGHTS_H

#include "runtime/program/Layers.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/InitialValues.h"
#include "runtime/stage/torch/Place.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

class StageWeights {
public:
  /// Layers [first, first + count) of the program's model. Throws
  /// std::invalid_argument if the program has none, Layers.h refuses it, the
  /// range is none of its, or it refuses the optimizer.
  StageWeights(const program::ProgramT &program, uint32_t first, uint32_t count,
               const Place &place);

  /// Of parameters, and their gradients and averages.
  at::ScalarType type() const;
  /// Of activations and their gradients, and of the copy.
  at::ScalarType computedType() const;

  int64_t elements() const { return count; }
  /// Of the parameters, and of their gradients.
  int64_t parameterBytes() const {
    return program::parameterBytes(types, count);
  }
  /// Of the parameters with their copy.
  int64_t bytes() const {
    return parameterBytes() + program::copyBytes(types, count);
  }

  /// Where a parameter lies in the flat weights, counted in elements.
  struct Slot : program::StageParameter {
    int64_t offset;
    std::string name;               ///< in files of weights
    program::ParameterNumber start; ///< whose numbers it begins with
  };
  const std::vector<Slot> &slots() const { return parameterSlots; }

  /// Tensors over the bytes of parameters (or gradients), one for each slot.
  std::vector<at::Tensor> bind(const std::byte *parameters) const;
  /// Over those of weights, with which a stage computes: the copy where there
  /// is one.
  std::vector<at::Tensor> bindComputed(const std::byte *weights) const;

  /// Makes the weights as they are before the first step, and clears the
  /// averages. Without `values` they are drawn; a tied parameter begins as the
  /// first layer's, wherever it is. Throws std::invalid_argument on other
  /// sizes, and where values are wanted and not given; and what `values` throw.
  void initialize(Bytes weights, Bytes optimizerState,
                  const InitialValues *values = nullptr) const;

  /// Of the optimizer's state.
  int64_t stateBytes() const {
    return program::optimizerBytes(optimizer.name, parameterBytes());
  }

  /// Makes the weights alone, likewise.
  void initializeWeights(Bytes weights,
                         const InitialValues *values = nullptr) const;

  /// One step of the optimizer with `scale` times `gradientSum`. Which
  /// parameters decay says program::Parameter. SGD gives the bits of
  /// torch.optim.SGD. `halted` is as Stage::optimizerStep says.
  void step(uint64_t step, double scale, ConstBytes gradientSum, Bytes weights,
            Bytes optimizerState, Bytes halted = {}) const;

private:
  std::vector<at::Tensor> bindAs(const std::byte *flat,
                                 program::DataType type) const;
  at::Tensor startOf(const Slot &slot, const InitialValues *values) const;
  /// Has the copy say what the parameters say.
  void refreshCopy(std::byte *weights) const;
  /// Sets the flag if the sum is not finite. Whether it is set; false on a GPU,
  /// whose host cannot know.
  bool halts(ConstBytes gradientSum, Bytes halted) const;
  template <typename T>
  void stepOfAdamW(uint64_t step, double scale, ConstBytes gradientSum,
                   Bytes weights, Bytes optimizerState, Bytes halted) const;
  void stepOfSgd(double scale, ConstBytes gradientSum, Bytes weights,
                 Bytes halted) const;

  program::Types types;
  program::OptimizerT optimizer;
  uint64_t seed;
  Place place;
  int64_t count = 0;
  std::vector<Slot> parameterSlots;
  std::vector<DecayRun> runs;
};

/// Throws std::invalid_argument, which names `what`, on other numbers of bytes.
void expectBytes(const char *what, size_t bytes, int64_t expected);

at::ScalarType scalarTypeOf(program::DataType type);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_STAGEWEIGHTS_H
