//===- StageWeights.h - A stage's weights as tensors ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters of a range of a model's layers, one after another in memory of
// the caller, in the order of runtime/program/Layers.h. Their gradients have
// the same layout. The optimizer's state is laid out as
// runtime/program/Optimizer.h says. In some programs, a copy of the parameters
// in another type follows them. The stage then computes with the copy.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_STAGEWEIGHTS_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_STAGEWEIGHTS_H

#include "runtime/model/Stage.h"
#include "runtime/model/optimizer/Muon.h"
#include "runtime/model/tensors/DevicePlacement.h"
#include "runtime/model/weights/InitialValues.h"
#include "runtime/program/Optimizer.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

class StageWeights {
public:
  /// Layers [first, first + count) of the program's model. Throws
  /// std::invalid_argument if the program has no model, if Layers.h rejects the
  /// model or the optimizer, or if the model does not have these layers.
  StageWeights(const program::ProgramT &program, uint32_t first, uint32_t count,
               const DevicePlacement &placement);

  /// The type of parameters, their gradients and averages.
  at::ScalarType type() const;
  /// The type of activations, of their gradients, and of the copy of the
  /// parameters if there is one.
  at::ScalarType computedType() const;

  int64_t elements() const { return count; }
  /// The size of the parameters in bytes. Their gradients have the same size.
  int64_t parameterBytes() const {
    return program::parameterBytes(types, count);
  }
  /// The size of the weights in bytes: the parameters, and the copy of them in
  /// the type of the activations if there is one.
  int64_t bytes() const {
    return parameterBytes() + program::copyBytes(types, count);
  }

  /// A parameter, and its offset in the flat weights, in elements.
  struct Slot : program::StageParameter {
    int64_t offset;
    std::string name; ///< the parameter's name in files of weights
    /// The parameter whose initial values this one gets: itself or, for a copy
    /// of a tied parameter, the first layer's.
    program::ParameterId initialFrom;
    program::StateLayout::Parameter state; ///< of the optimizer
    bool decays;                           ///< whether weight decay applies
  };
  const std::vector<Slot> &slots() const { return parameterSlots; }

  /// Tensors over the bytes of parameters (or of gradients), one for each slot.
  std::vector<at::Tensor> tensorsOver(const std::byte *parameters) const;
  /// Tensors over the weights that the stage computes with: the copy if there
  /// is one, else the parameters.
  std::vector<at::Tensor> computedTensorsOver(const std::byte *weights) const;

  /// Sets the weights to their values before the first step, and the optimizer
  /// state to that of `values` or to zero. If `values` is null, parameters are
  /// drawn at random. A tied
  /// parameter starts with the first layer's values on every stage. Throws
  /// std::invalid_argument if a size is wrong, or if the model needs `values`
  /// and it is null. Throws what `values` throws.
  void initialize(Bytes weights, Bytes optimizerState,
                  const InitialValues *values = nullptr) const;

  /// The size of the optimizer's state.
  int64_t stateBytes() const {
    return program::parameterBytes(types, stateElements);
  }

  /// Like initialize(), but only for the weights.
  void initializeWeights(Bytes weights,
                         const InitialValues *values = nullptr) const;

  /// See Stage::squaredNorm.
  void squaredNorm(ConstBytes gradientSum, Bytes squaredNorm) const;

  /// Updates the weights and the optimizer state. Weight decay applies if
  /// program::decays says so. SGD gives the same bits as torch.optim.SGD. If
  /// parameters are bfloat16, an update is computed in float32, and its results
  /// are rounded. For `halted` and `squaredNorm`, see Stage::optimizerStep.
  void update(const Update &numbers, ConstBytes gradientSum, Bytes weights,
              Bytes optimizerState, Bytes halted = {},
              ConstBytes squaredNorm = {}) const;

private:
  /// Consecutive parameters that SGD or AdamW updates together.
  struct UpdateRun {
    int64_t begin;                     ///< the first element
    std::vector<int64_t> stateOffsets; ///< of the first element's states
    /// With and without weight decay. Their ends count from the first element.
    std::vector<DecayRange> ranges;
  };
  static std::vector<UpdateRun> runsOf(const std::vector<Slot> &slots);
  std::vector<at::Tensor> tensorsOverAs(const std::byte *flat,
                                        program::DataType type) const;
  at::Tensor startOf(const Slot &slot, const InitialValues *values) const;
  void readStates(Bytes optimizerState, const InitialValues &values) const;
  /// Makes the copy equal to the parameters.
  void refreshCopy(std::byte *weights) const;
  /// Decides about an update on the host: sets the flag `halted` if necessary
  /// and clips `numbers.scale`. Returns whether the update changes anything.
  bool goesOn(Update &numbers, ConstBytes gradientSum, Bytes halted,
              ConstBytes squaredNorm) const;
  /// Lets the GPU decide about an update: see `goesOn`. The host does not wait
  /// for its decision.
  UpdateTensors decideOnGpu(const Update &numbers, ConstBytes gradientSum,
                            Bytes halted, ConstBytes squaredNorm) const;
  /// Updates the parameters whose rule is AdamW.
  template <typename T>
  void stepOfAdamW(const Update &numbers, const UpdateTensors &onGpu,
                   ConstBytes gradientSum, Bytes weights,
                   Bytes optimizerState) const;
  /// Updates the parameters whose rule is Muon.
  void stepOfMuon(const Update &numbers, const UpdateTensors &onGpu,
                  ConstBytes gradientSum, Bytes weights,
                  Bytes optimizerState) const;
  void stepOfSgd(const Update &numbers, const UpdateTensors &onGpu,
                 ConstBytes gradientSum, Bytes weights,
                 Bytes optimizerState) const;

  program::Types types;
  program::OptimizerT optimizer;
  uint64_t seed;
  DevicePlacement placement;
  int64_t count = 0;
  int64_t stateElements = 0;
  std::vector<Slot> parameterSlots;
  std::vector<UpdateRun> runs;
};

/// If `bytes` is not `expected`, throws std::invalid_argument with `what` in
/// the message.
void expectBytes(const char *what, size_t bytes, int64_t expected);

at::ScalarType scalarTypeOf(program::DataType type);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_STAGEWEIGHTS_H
