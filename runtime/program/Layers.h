//===- Layers.h - What a model's layers hold and cost -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says which tensors each layer of a model has, in which
// order they lie in a stage's flat weights, and what a micro-batch costs there.
// The compiler partitions and sizes buffers with it; the runtime binds its
// tensors to it.
//
// A model is one of the architectures below, or exported from PyTorch: then it
// is a package of layers (Package.h), each for given numbers of samples.
//
// Layers of "gpt2" (pre-norm, learned positions): 0 is the token and position
// embedding, 1..L the transformer blocks, L+1 the final norm and the head. In a
// tied model the head's matrix is the token embedding's: a stage that has both
// layers holds it once, and of two stages each its own copy.
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

/// The models that there are, by name.
inline constexpr std::string_view kArchitectures[] = {"gpt2"};

/// What the architecture of a model is called that has a package.
inline constexpr char kExported[] = "exported";

struct Parameter {
  std::string name;           ///< unique inside its layer, "attention.weight"
  std::vector<int64_t> shape; ///< row-major
  Start start;
  /// As in package.fbs.
  double deviation = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  int64_t zeroRow = -1;
  Decay decay = Decay::ByShape;

  int64_t elements() const;
  /// Whether weight decay works on it. Unless its package says so by name, that
  /// is whether more than one of its dimensions is larger than 1: a matrix and
  /// a convolution's kernel decay, a bias and a norm's gain do not, also of the
  /// shape [1, 1, width].
  bool decays() const;
};

/// What one layer costs for one micro-batch.
struct LayerCost {
  int64_t forwardFlops;
  int64_t inputGradientFlops;
  int64_t weightGradientFlops;
  int64_t stashBytes;
  int64_t weightStashBytes;
};

/// The types of a model's values, by what these are for.
struct Types {
  DataType weights;     ///< and their gradients and optimizer state
  DataType activations; ///< and their gradients; stages compute in it

  /// Whether weights hold behind the parameters a copy of them in the
  /// activations' type, with which the stage computes.
  bool haveCopy() const { return weights != activations; }
};

/// Empty if `model` can be trained, else what is wrong with it ("expected …,
/// got …"): an unknown architecture, a zero size, a width that the heads do not
/// divide, a dropout outside [0, 1), or a package that checkPackage refuses.
std::string checkModel(const ModelT &model);

/// Empty if stages of the model, which is checked, can compute in these types
/// and with micro-batches of so many samples in so many parts, else what is
/// wrong with them: types that checkTypes refuses, and whatever a package was
/// not exported for.
std::string checkUse(const ModelT &model, Types types, uint32_t microBatchSize,
                     uint32_t parts);

int64_t bytesOf(DataType type);

Types typesOf(const ProgramT &program);

/// Empty if models can be trained in these, else what is wrong with them:
/// weights of float32 or float64 and activations of the same, or of bfloat16
/// beside float32.
std::string checkTypes(Types types);

/// Layers of the model, embedding and head included.
uint32_t layerCount(const ModelT &model);

/// The parameters of `layer`, in order. Requires a checked model and layer <
/// layerCount(model).
std::vector<Parameter> layerParameters(const ModelT &model, uint32_t layer);

/// What parameter `number` of `layer` is called in files of weights:
/// "layers.1.attention.weight", or its path in the module that was exported.
std::string parameterName(const ModelT &model, uint32_t layer, uint32_t number);

/// A parameter of a layer.
struct ParameterNumber {
  uint32_t layer;
  uint32_t number; ///< in its layer
};

/// Which parameter's random numbers a parameter begins with: its own or, where
/// it is tied, those of the first layer's.
ParameterNumber startsAs(const ModelT &model, uint32_t layer, uint32_t number);

/// A parameter of a stage.
struct StageParameter {
  uint32_t layer;
  uint32_t number; ///< in its layer
  Parameter parameter;
};

/// The parameters of layers [first, first + count) in the order in which they
/// lie in a stage's weights, without padding: those of its layers, one after
/// another, but the last layer's tied parameter only where the layers do not
/// have the first one, which it is tied to. Requires a checked model and a
/// range of its layers.
std::vector<StageParameter> stageParameters(const ModelT &model, uint32_t first,
                                            uint32_t count);

/// Elements of the weights of layers [first, first + count).
int64_t parameterCount(const ModelT &model, uint32_t first, uint32_t count);

/// Whether the first layer and the last one have a parameter in common.
bool isTied(const ModelT &model);

/// Where the first stage and the last one, of the model's last `lastCount`
/// layers, hold a tied model's parameter that both have. None where the model
/// is not tied or one stage is both. Requires a checked model and 1 to all of
/// its layers.
std::optional<Tied> tiedParameters(const ModelT &model, Types types,
                                   uint32_t lastCount);

/// Empty if `stage`, of a checked model's layers, has the bytes of weights and
/// of the copy in them, of optimizer state and, unless it is the last, boundary
/// of these, else what is wrong with it.
std::string checkBytes(const ModelT &model, Types types,
                       std::string_view optimizer, uint32_t microBatchSize,
                       const Stage &stage);

/// Empty if the stages of `program` (which has some, and an optimizer) are
/// those of its model, else what is wrong with them: a model that checkModel
/// refuses, a use of it that checkUse does, no samples in a micro-batch, an
/// optimizer that checkOptimizer refuses, layers that are not in one stage
/// each, in order, bytes of weights, optimizer state or a boundary that are not
/// the layers', or another `tied` than the model's.
std::string checkStages(const ProgramT &program);

/// Costs of `layer` for one micro-batch of `microBatchSize` sequences. The
/// stash is what the runtime keeps from the forward to the backward besides the
/// weights, the weight stash what it keeps between the halves of a split
/// backward; tests hold them against what is measured.
LayerCost layerCost(const ModelT &model, Types types, uint32_t microBatchSize,
                    uint32_t layer);

/// Bytes of so many parameters, of which the gradient has as many, and of the
/// copy of them. Weights are both.
int64_t parameterBytes(Types types, int64_t elements);
int64_t copyBytes(Types types, int64_t elements);

/// The optimizers that there are, by name.
inline constexpr char kAdamW[] = "adamw", kSgd[] = "sgd";

/// Empty if there is one of this name, else what is wrong with it.
std::string checkOptimizer(const std::string &name);

/// Bytes of the state that an optimizer keeps for parameters of so many: two
/// averages, or nothing.
int64_t optimizerBytes(std::string_view optimizer, int64_t parameterBytes);

/// Bytes of what the first stage and the last one load for one micro-batch: of
/// "gpt2", numbers of tokens, int64 each. 0 for a number of samples that a
/// package was not exported for.
int64_t inputBytes(const ModelT &model, uint32_t microBatchSize);
int64_t labelBytes(const ModelT &model, uint32_t microBatchSize);

/// Bytes of a loss: a float64, whatever the data type.
inline constexpr int64_t kLossBytes = 8;

/// Bytes of the activation between `layer` and the next: of "gpt2",
/// [micro-batch, context, width]. After the last layer those that go in.
int64_t boundaryBytes(const ModelT &model, Types types, uint32_t microBatchSize,
                      uint32_t layer);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_LAYERS_H
