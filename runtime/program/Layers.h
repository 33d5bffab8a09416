//===- Layers.h - The tensors and costs of a model's layers -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters of a model's layers, their order in the weights of a stage,
// and the cost of a layer for one micro-batch. The compiler uses these
// functions to partition the model and to compute the sizes of buffers. The
// runtime uses them to find its tensors in the weights.
//
// A model is a package of layers (Package.h). All functions that take a model
// require one that checkPackage accepts.
//
// In a tied model, the last layer has a parameter of the first layer. If one
// stage has both layers, it has one copy of this parameter. If the layers are
// in two stages, each stage has its own copy.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_LAYERS_H
#define CHIMERA_RUNTIME_PROGRAM_LAYERS_H

#include "runtime/program/Package.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::program {

struct Parameter {
  std::string name; ///< unique inside its layer, for example "attention.weight"
  std::vector<int64_t> shape; ///< row-major
  Initialization start;
  /// The following fields are those of LayerParameter in package.fbs.
  double deviation = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  int64_t zeroRow = -1;
  Decay decay = Decay::ByShape;

  int64_t elements() const;
  /// Whether weight decay applies to the parameter. If `decay` is ByShape,
  /// weight decay applies if more than one dimension is larger than 1. So it
  /// applies to a matrix or a convolution kernel, but not to a bias or the gain
  /// of a norm, even if its shape is [1, 1, width].
  bool decays() const;
};

/// The cost of one layer for one micro-batch.
struct LayerCost {
  int64_t forwardFlops;
  int64_t inputGradientFlops;
  int64_t weightGradientFlops;
  int64_t stashBytes;
  int64_t weightStashBytes;
};

/// The types of a model's values.
struct Types {
  /// The type of weights, their gradients and optimizer state.
  DataType weights;
  /// The type of activations and their gradients. Stages compute in this type.
  DataType activations;

  /// Whether the weights contain, after the parameters, a copy of the
  /// parameters in the type of the activations. The stage computes with this
  /// copy.
  bool weightsHaveComputeCopy() const { return weights != activations; }
};

/// Checks whether the stages of `model` can compute in these types, with
/// micro-batches of `microBatchSize` samples that are divided into `parts`
/// parts. Returns an error text, or an empty text if they can. Refuses types
/// that checkTypes refuses, types for which a package was not exported, sizes
/// that checkSamples refuses, and parts if the loss of a package is not
/// divisible (package.fbs).
std::string checkTypesAndSizes(const PackageT &model, Types types,
                               uint32_t microBatchSize, uint32_t parts);

int64_t bytesOf(DataType type);

Types typesOf(const ProgramT &program);

/// Returns an error text, or an empty text if models can be trained in these
/// types. Activations must have the type of the weights, or be bfloat16 if the
/// weights are float32.
std::string checkTypes(Types types);

/// The number of layers of the model, including embedding and head.
uint32_t layerCount(const PackageT &model);

/// The parameters of `layer`, in their order in the weights. Requires
/// layer < layerCount(model).
std::vector<Parameter> layerParameters(const PackageT &model, uint32_t layer);

/// The name of parameter `number` of `layer` in files of weights: for example
/// "layers.1.attention.weight". In a model that was exported, it is the path of
/// the parameter in the PyTorch module.
std::string parameterName(const PackageT &model, uint32_t layer,
                          uint32_t number);

/// Identifies a parameter by its layer and its number.
struct ParameterId {
  uint32_t layer;
  uint32_t number; ///< in its layer
};

/// The parameter whose random numbers initialise parameter `number` of `layer`.
/// For the tied parameter of the last layer, it is the tied parameter of the
/// first layer. For all others, it is the parameter itself.
ParameterId initialValueSource(const PackageT &model, uint32_t layer,
                               uint32_t number);

/// A parameter of a stage.
struct StageParameter {
  uint32_t layer;
  uint32_t number; ///< in its layer
  Parameter parameter;
};

/// The parameters of a stage with layers [first, first + count), in their order
/// in the weights: layer after layer, without padding. If the model is tied and
/// the range includes the first and the last layer, the tied parameter of the
/// last layer is left out. Requires a range of the model's layers.
std::vector<StageParameter> stageParameters(const PackageT &model,
                                            uint32_t first, uint32_t count);

/// The number of elements of stageParameters(model, first, count).
int64_t parameterCount(const PackageT &model, uint32_t first, uint32_t count);

/// Whether the first and the last layer share a parameter.
bool isTied(const PackageT &model);

/// The offsets of the tied parameter in the weights of the first stage and of
/// the last stage. The last stage has the last `lastCount` layers of the model.
/// None if the model is not tied, or if there is only one stage. Requires
/// 1 <= lastCount <= layerCount(model).
std::optional<Tied> tiedParameters(const PackageT &model, Types types,
                                   uint32_t lastCount);

/// The cost of `layer` for one micro-batch of `microBatchSize` samples. The
/// stash is the memory that the runtime keeps from the forward to the backward.
/// It does not include the weights. The weight stash is the memory that the
/// runtime keeps from an input gradient to its weight gradient. Tests compare
/// the two sizes with measurements.
LayerCost layerCost(const PackageT &model, uint32_t microBatchSize,
                    uint32_t layer);

/// The bytes of parameters with `elements` elements, and of their copy in the
/// type of the activations. The weights of a stage consist of the parameters
/// and the copy. The gradient has the size of the parameters.
int64_t parameterBytes(Types types, int64_t elements);
int64_t copyBytes(Types types, int64_t elements);

/// The bytes that the first stage (inputs) and the last stage (labels) load for
/// one micro-batch.
int64_t inputBytes(const PackageT &model, uint32_t microBatchSize);
int64_t labelBytes(const PackageT &model, uint32_t microBatchSize);

/// The bytes of a loss. It is a float64, whatever the types of the model are.
inline constexpr int64_t kLossBytes = 8;
/// The bytes of a squared norm: one float64 for all types of weights.
inline constexpr int64_t kNormBytes = 8;

/// The bytes of the activation between `layer` and the next layer. No layer
/// follows the last layer: for the last layer, the result is the bytes of its
/// input.
int64_t boundaryBytes(const PackageT &model, uint32_t microBatchSize,
                      uint32_t layer);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_LAYERS_H
