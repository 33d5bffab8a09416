//===- Layers.h - The tensors and costs of a model's layers -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of a model's layers, their order in a stage's flat weights, and
// the cost of a layer for one micro-batch. This is the only definition: the
// compiler uses it to partition the model and to size buffers, and the runtime
// uses it to bind its tensors.
//
// A model has one of the architectures below, or it was exported from PyTorch.
// In that case it is a package of layers (Package.h), which supports only the
// numbers of samples that it was exported for.
//
// Layers of "gpt2" (pre-norm, learned positions): 0 is the token and position
// embedding, 1..L are the transformer blocks, L+1 is the final norm and the
// head. In a tied model the head's matrix is the token embedding. If one stage
// has both layers, it has one copy of the matrix; if two stages have them, each
// has its own copy.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_LAYERS_H
#define CHIMERA_RUNTIME_PROGRAM_LAYERS_H

#include "runtime/program/Package.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::program {

/// The architectures that the runtime implements.
inline constexpr std::string_view kArchitectures[] = {"gpt2"};

/// The architecture name of a model that has a package.
inline constexpr char kExported[] = "exported";

struct Parameter {
  std::string name; ///< unique inside its layer, for example "attention.weight"
  std::vector<int64_t> shape; ///< row-major
  Start start;
  /// See LayerParameter in package.fbs.
  double deviation = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  int64_t zeroRow = -1;
  Decay decay = Decay::ByShape;

  int64_t elements() const;
  /// Whether weight decay applies to the parameter. If the package does not
  /// say, it applies if more than one dimension is larger than 1: to a matrix
  /// and a convolution's kernel, but not to a bias or a norm's gain, even of
  /// shape [1, 1, width].
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
  /// The type of activations and their gradients. Stages compute in it.
  DataType activations;

  /// Whether weights contain, after the parameters, a copy of them in the type
  /// of the activations. The stage computes with that copy.
  bool haveCopy() const { return weights != activations; }
};

/// Returns what is wrong with `model` ("expected …, got …"); empty if it can be
/// trained. Refuses an unknown architecture, a zero size, a width that is not
/// divisible by the number of heads, a dropout outside [0, 1), and a package
/// that checkPackage refuses.
std::string checkModel(const ModelT &model);

/// Returns what is wrong with a use of `model`; empty if its stages can compute
/// in these types, with micro-batches of `microBatchSize` samples in `parts`
/// parts. Refuses types that checkTypes refuses, and types and sizes that a
/// package was not exported for. Requires a checked model.
std::string checkTypesAndSizes(const ModelT &model, Types types,
                               uint32_t microBatchSize, uint32_t parts);

int64_t bytesOf(DataType type);

Types typesOf(const ProgramT &program);

/// Returns what is wrong with the types; empty if models can be trained in
/// them. Weights must be float32 or float64. Activations must have the same
/// type, or bfloat16 if the weights are float32.
std::string checkTypes(Types types);

/// The number of layers of the model, including embedding and head.
uint32_t layerCount(const ModelT &model);

/// The parameters of `layer`, in order. Requires a checked model and layer <
/// layerCount(model).
std::vector<Parameter> layerParameters(const ModelT &model, uint32_t layer);

/// The name of parameter `number` of `layer` in files of weights:
/// "layers.1.attention.weight", or its path in the exported module.
std::string parameterName(const ModelT &model, uint32_t layer, uint32_t number);

/// Identifies a parameter by its layer and its number.
struct ParameterNumber {
  uint32_t layer;
  uint32_t number; ///< in its layer
};

/// The parameter whose random numbers initialise this parameter: the parameter
/// itself or, for the tied parameter of the last layer, the first layer's.
ParameterNumber initialValueSource(const ModelT &model, uint32_t layer,
                                   uint32_t number);

/// A parameter of a stage.
struct StageParameter {
  uint32_t layer;
  uint32_t number; ///< in its layer
  Parameter parameter;
};

/// The parameters of layers [first, first + count) in their order in a stage's
/// weights, without padding: layer after layer. If the range includes both
/// layers with the tied parameter, the last layer's is left out. Requires a
/// checked model and a range of its layers.
std::vector<StageParameter> stageParameters(const ModelT &model, uint32_t first,
                                            uint32_t count);

/// The number of elements of the parameters of layers [first, first + count).
int64_t parameterCount(const ModelT &model, uint32_t first, uint32_t count);

/// Whether the first and the last layer share a parameter.
bool isTied(const ModelT &model);

/// The places of the tied parameter in the first stage and in the last stage,
/// which has the model's last `lastCount` layers. None if the model is not
/// tied, or if there is only one stage. Requires a checked model and 1 <=
/// lastCount <= layerCount(model).
std::optional<Tied> tiedParameters(const ModelT &model, Types types,
                                   uint32_t lastCount);

/// Returns what is wrong with the sizes of `stage`; empty if its bytes of
/// weights, of their copy, of optimizer state and, except for the last stage,
/// of the boundary are those of its layers. Requires a checked model.
std::string checkBytes(const ModelT &model, Types types,
                       std::string_view optimizer, uint32_t microBatchSize,
                       const Stage &stage);

/// Returns what is wrong with the stages of `program`; empty if they agree with
/// its model. Refuses a model that checkModel refuses, a use that
/// checkTypesAndSizes refuses, an optimizer that checkOptimizer refuses, and a
/// micro-batch size of 0. Refuses stages that do not have each layer once, in
/// order, bytes that checkBytes refuses, and a `tied` that differs from the
/// model's. Requires at least one stage, a model and an optimizer.
std::string checkStages(const ProgramT &program);

/// The cost of `layer` for one micro-batch of `microBatchSize` samples. The
/// stash is the memory that the runtime keeps from the forward to the backward,
/// without the weights. The weight stash is the memory that it keeps between
/// the two halves of a split backward. Tests compare both with measurements.
LayerCost layerCost(const ModelT &model, Types types, uint32_t microBatchSize,
                    uint32_t layer);

/// Bytes of `elements` parameters (their gradient has the same size), and of
/// the copy of them in the activations' type. The weights have the sum of both.
int64_t parameterBytes(Types types, int64_t elements);
int64_t copyBytes(Types types, int64_t elements);

/// The optimizers that exist.
inline constexpr char kAdamW[] = "adamw", kSgd[] = "sgd";

/// Returns what is wrong with the name; empty if it is the name of an
/// optimizer.
std::string checkOptimizer(const std::string &name);

/// Bytes of the optimizer state for `parameterBytes` bytes of parameters: two
/// averages for AdamW, nothing for SGD.
int64_t optimizerBytes(std::string_view optimizer, int64_t parameterBytes);

/// Bytes that the first stage (inputs) and the last stage (labels) load for one
/// micro-batch. For "gpt2" these are token numbers, int64. 0 if a package was
/// not exported for this number of samples.
int64_t inputBytes(const ModelT &model, uint32_t microBatchSize);
int64_t labelBytes(const ModelT &model, uint32_t microBatchSize);

/// Bytes of a loss, which is a float64 for every data type.
inline constexpr int64_t kLossBytes = 8;

/// Bytes of the activation between `layer` and the next layer; for "gpt2" its
/// shape is [samples, context, width]. For the last layer of a package, the
/// bytes of its input.
int64_t boundaryBytes(const ModelT &model, Types types, uint32_t microBatchSize,
                      uint32_t layer);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_LAYERS_H
