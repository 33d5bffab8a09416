//===- Layers.cpp - The tensors and costs of a model's layers -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Layers.h"

#include "runtime/program/Saturated.h"

#include <algorithm>
#include <cassert>

namespace chimera::program {

bool Parameter::decays() const {
  if (decay != Decay::ByShape)
    return decay == Decay::Always;
  return std::ranges::count_if(shape,
                               [](int64_t extent) { return extent > 1; }) > 1;
}

int64_t Parameter::elements() const { return elementsOf(shape); }

int64_t bytesOf(DataType type) {
  return type == DataType::Float64 ? 8 : type == DataType::BFloat16 ? 2 : 4;
}

Types typesOf(const ProgramT &program) {
  return {program.weight_type, program.activation_type};
}

std::string checkTypes(Types types) {
  if (types.activations == types.weights ||
      (types.weights == DataType::Float32 &&
       types.activations == DataType::BFloat16))
    return "";
  return std::string("expected activations of the weights' type, or of "
                     "bfloat16 beside weights of float32, got ") +
         nameOf(types.activations) + " beside " + nameOf(types.weights);
}

std::string checkTypesAndSizes(const PackageT &model, Types types,
                               uint32_t microBatchSize, uint32_t parts) {
  if (std::string problem = checkTypes(types); !problem.empty())
    return problem;
  if (types.activations != model.type)
    return std::string("expected activations of the type in which the package "
                       "computes, ") +
           nameOf(model.type) + ", got " + nameOf(types.activations);
  if (parts > 1 && !model.divisible)
    return "expected whole micro-batches, because the exporter found that this "
           "model cannot compute parts of them, got " +
           std::to_string(parts) +
           " parts: use a schedule that does not divide micro-batches";
  return checkSamples(model, microBatchSize);
}

uint32_t layerCount(const PackageT &model) {
  return static_cast<uint32_t>(model.layers.size());
}

std::vector<Parameter> layerParameters(const PackageT &model, uint32_t layer) {
  assert(layer < layerCount(model));
  std::vector<Parameter> result;
  for (const auto &parameter : kindOf(model, layer).parameters)
    result.push_back({parameter->name, parameter->shape, parameter->start,
                      parameter->deviation, parameter->mean, parameter->low,
                      parameter->high, parameter->zero_row, parameter->decay});
  return result;
}

std::string parameterName(const PackageT &model, uint32_t layer,
                          uint32_t number) {
  return model.layers[layer]->path +
         kindOf(model, layer).parameters[number]->name;
}

bool isTied(const PackageT &model) { return model.tied != nullptr; }

ParameterId initialValueSource(const PackageT &model, uint32_t layer,
                               uint32_t number) {
  const TiedParameter *tied = model.tied.get();
  if (tied && layer + 1 == layerCount(model) && number == tied->last())
    return {0, tied->first()};
  return {layer, number};
}

/// Whether parameter `number` of `layer` shares memory with another parameter
/// of its stage, whose first layer is `first`. This is true for the tied
/// parameter of the last layer if the stage also has the first layer.
static bool sharesTiedParameter(const PackageT &model, uint32_t first,
                                uint32_t layer, uint32_t number) {
  if (first != 0 || layer + 1 != layerCount(model))
    return false;
  return isTied(model) && number == model.tied->last();
}

std::vector<StageParameter> stageParameters(const PackageT &model,
                                            uint32_t first, uint32_t count) {
  std::vector<StageParameter> result;
  for (uint32_t layer = first; layer != first + count; ++layer) {
    uint32_t number = 0;
    for (Parameter &parameter : layerParameters(model, layer)) {
      if (!sharesTiedParameter(model, first, layer, number))
        result.push_back({layer, number, std::move(parameter)});
      ++number;
    }
  }
  return result;
}

/// The number of elements of the parameters of `layer`, in a stage whose first
/// layer is `first`. If the stage has both the first and the last layer of the
/// model, the tied parameter is counted only in the first layer.
static int64_t elementsOf(const PackageT &model, uint32_t first,
                          uint32_t layer) {
  int64_t result = 0;
  uint32_t number = 0;
  for (const Parameter &parameter : layerParameters(model, layer))
    if (!sharesTiedParameter(model, first, layer, number++))
      result = saturatedSum({result, parameter.elements()});
  return result;
}

int64_t parameterCount(const PackageT &model, uint32_t first, uint32_t count) {
  int64_t result = 0;
  for (uint32_t layer = first; layer < first + count; ++layer)
    result = saturatedSum({result, elementsOf(model, first, layer)});
  return result;
}

std::optional<Tied> tiedParameters(const PackageT &model, Types types,
                                   uint32_t lastCount) {
  const uint32_t layers = layerCount(model);
  const TiedParameter *tied = model.tied.get();
  if (!tied || lastCount == layers)
    return std::nullopt;
  /// The number of elements of the layer's parameters before parameter
  /// `number`.
  auto before = [&](uint32_t layer, uint32_t number) {
    int64_t result = 0;
    const std::vector<Parameter> parameters = layerParameters(model, layer);
    for (uint32_t i = 0; i < number; ++i)
      result = saturatedSum({result, parameters[i].elements()});
    return result;
  };
  const int64_t elements = layerParameters(model, 0)[tied->first()].elements();
  const int64_t inLast =
      saturatedSum({parameterCount(model, layers - lastCount, lastCount - 1),
                    before(layers - 1, tied->last())});
  return Tied(parameterBytes(types, before(0, tied->first())),
              parameterBytes(types, inLast), parameterBytes(types, elements));
}

LayerCost layerCost(const PackageT &model, uint32_t microBatchSize,
                    uint32_t layer) {
  assert(layer < layerCount(model));
  const LayerGraphsT &graphs = graphsOf(model, layer);
  return {operationsFor(graphs.forward_flops, microBatchSize),
          operationsFor(graphs.input_gradient_flops, microBatchSize),
          operationsFor(graphs.weight_gradient_flops, microBatchSize),
          program::stashBytes(graphs, microBatchSize),
          bytesOf(graphs.kept_shapes, microBatchSize)};
}

int64_t parameterBytes(Types types, int64_t elements) {
  return saturatedProduct({elements, bytesOf(types.weights)});
}

int64_t copyBytes(Types types, int64_t elements) {
  return types.weightsHaveComputeCopy()
             ? saturatedProduct({elements, bytesOf(types.activations)})
             : 0;
}

int64_t inputBytes(const PackageT &model, uint32_t microBatchSize) {
  return bytesOf(graphsOf(model, 0).inputs, microBatchSize);
}

int64_t labelBytes(const PackageT &model, uint32_t microBatchSize) {
  return bytesOf(graphsOf(model, layerCount(model) - 1).labels, microBatchSize);
}

int64_t boundaryBytes(const PackageT &model, uint32_t microBatchSize,
                      uint32_t layer) {
  const LayerGraphsT &graphs = graphsOf(model, layer);
  return bytesOf(layer + 1 == layerCount(model) ? graphs.inputs
                                                : graphs.outputs,
                 microBatchSize);
}

} // namespace chimera::program
