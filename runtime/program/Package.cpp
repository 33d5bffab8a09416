//===- Package.cpp - A model as a package of layers -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Package.h"

#include "runtime/program/Saturated.h"

#include <algorithm>
#include <iterator>

namespace chimera::program {

using Shapes = std::vector<std::unique_ptr<TensorShapeT>>;

const char *nameOf(Role role) {
  const char *const names[] = {
      "parameter",       "constant",       "input",
      "label",           "output",         "saved tensor",
      "output gradient", "input gradient", "weight gradient"};
  static_assert(std::size(names) == size_t(Role::MAX) + 1);
  const auto number = static_cast<size_t>(role);
  return number < std::size(names) ? names[number] : "unknown role";
}

const char *nameOf(TensorType type) {
  const char *const names[] = {"boolean", "uint8",  "int8",    "int16",
                               "int32",   "int64",  "float16", "bfloat16",
                               "float32", "float64"};
  static_assert(std::size(names) == size_t(TensorType::MAX) + 1);
  const auto number = static_cast<size_t>(type);
  return number < std::size(names) ? names[number] : "unknown type";
}

const char *nameOf(Initialization start) {
  const char *const names[] = {"normal",          "zeros",    "ones",
                               "given",           "constant", "uniform",
                               "truncated normal"};
  static_assert(std::size(names) == size_t(Initialization::MAX) + 1);
  const auto number = static_cast<size_t>(start);
  return number < std::size(names) ? names[number] : "unknown start";
}

const char *nameOf(Decay decay) {
  const char *const names[] = {"by shape", "never", "always"};
  static_assert(std::size(names) == size_t(Decay::MAX) + 1);
  const auto number = static_cast<size_t>(decay);
  return number < std::size(names) ? names[number] : "unknown decay";
}

const LayerKindT &kindOf(const PackageT &package, uint32_t layer) {
  return *package.kinds[package.layers[layer]->kind];
}

const LayerGraphsT &graphsOf(const PackageT &package, uint32_t layer) {
  return *kindOf(package, layer).graphs;
}

uint64_t fileBytes(const PackageT &package) {
  // No table has more bytes than this, if its lists and texts are not counted.
  // Only LayerGraphs has up to twice as many.
  constexpr uint64_t kTable = 128;
  uint64_t bytes = kTable + package.producer.size();
  for (const auto *names : {&package.inputs, &package.labels})
    for (const std::string &name : *names)
      bytes += kTable + name.size();
  auto addShapes = [&](const Shapes &shapes) {
    for (const auto &shape : shapes)
      bytes += kTable + (shape->shape.size() + shape->per_sample.size()) *
                            sizeof(int64_t);
  };
  auto addGraph = [&](const GraphT &graph) {
    bytes +=
        kTable + (graph.inputs.size() + graph.outputs.size()) * sizeof(Port);
    for (const auto &call : graph.calls) {
      bytes += kTable + call->operator_.size() + call->overload.size() +
               call->results.size() * sizeof(int32_t);
      for (const auto &argument : call->arguments)
        bytes += kTable + argument->values.size() * sizeof(int32_t) +
                 argument->text.size() +
                 (argument->integers.size() + argument->per_sample.size() +
                  argument->numbers.size()) *
                     sizeof(int64_t);
    }
  };
  for (const auto &kind : package.kinds) {
    bytes += kTable;
    for (const auto &parameter : kind->parameters)
      bytes += kTable + parameter->name.size() +
               parameter->shape.size() * sizeof(int64_t);
    for (const auto &constant : kind->constants)
      bytes += kTable + constant->bytes.size() +
               constant->shape.size() * sizeof(int64_t);
    const LayerGraphsT &graphs = *kind->graphs;
    bytes += 2 * kTable + graphs.differentiable.size() +
             graphs.kept.size() * sizeof(uint32_t);
    for (const Shapes *shapes :
         {&graphs.inputs, &graphs.labels, &graphs.outputs, &graphs.saved,
          &graphs.kept_shapes})
      addShapes(*shapes);
    for (const auto &archive : graphs.native)
      bytes += kTable + archive->sha256.size();
    for (const auto *graph :
         {&graphs.forward, &graphs.backward, &graphs.weight, &graphs.logits})
      if (*graph)
        addGraph(**graph);
  }
  for (const auto &layer : package.layers)
    bytes += kTable + layer->path.size();
  return bytes;
}

std::vector<int64_t> valuesFor(const std::vector<int64_t> &constants,
                               const std::vector<int64_t> &perSample,
                               uint32_t samples) {
  std::vector<int64_t> values = constants;
  for (size_t i = 0; i < perSample.size(); ++i)
    values[i] += perSample[i] * samples;
  return values;
}

std::vector<int64_t> shapeFor(const TensorShapeT &tensor, uint32_t samples) {
  return valuesFor(tensor.shape, tensor.per_sample, samples);
}

int64_t operationsFor(const Operations &operations, uint32_t samples) {
  const auto part = [](uint64_t number, int64_t times) {
    return saturatedProduct(
        {static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)), times});
  };
  const int64_t n = samples;
  return saturatedSum({part(operations.constant(), 1),
                       part(operations.per_sample(), n),
                       part(operations.per_pair(), n * n)});
}

int64_t bytesOf(TensorType type) {
  switch (type) {
  case TensorType::Boolean:
  case TensorType::UInt8:
  case TensorType::Int8:
    return 1;
  case TensorType::Int16:
  case TensorType::Float16:
  case TensorType::BFloat16:
    return 2;
  case TensorType::Int32:
  case TensorType::Float32:
    return 4;
  case TensorType::Int64:
  case TensorType::Float64:
    return 8;
  }
  return 8;
}

int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t result = 1;
  for (int64_t extent : shape)
    result = saturatedProduct({result, extent});
  return result;
}

int64_t bytesOf(const TensorShapeT &tensor, uint32_t samples) {
  int64_t result = bytesOf(tensor.type);
  for (int64_t extent : shapeFor(tensor, samples))
    result = saturatedProduct({result, extent});
  return result;
}

int64_t bytesOf(const Shapes &tensors, uint32_t samples) {
  int64_t result = 0;
  for (const auto &tensor : tensors)
    result = saturatedSum({result, bytesOf(*tensor, samples)});
  return result;
}

int64_t largestBytes(const LayerKindT &kind, uint32_t samples,
                     int64_t bytesOfParameter) {
  int64_t largest = 0;
  for (const auto &parameter : kind.parameters)
    largest =
        std::max(largest, elementsOf(parameter->shape) * bytesOfParameter);
  for (const auto &constant : kind.constants)
    largest = std::max(largest, static_cast<int64_t>(constant->bytes.size()));
  const LayerGraphsT &graphs = *kind.graphs;
  for (const Shapes *shapes :
       {&graphs.inputs, &graphs.labels, &graphs.outputs, &graphs.saved})
    for (const auto &tensor : *shapes)
      largest = std::max(largest, bytesOf(*tensor, samples));
  // There are logits for each element of a label.
  for (const auto &label : graphs.labels)
    if (graphs.logits)
      largest = std::max(
          largest,
          saturatedProduct({bytesOf(*label, samples) / bytesOf(label->type),
                            static_cast<int64_t>(graphs.vocabulary),
                            bytesOfParameter}));
  return largest;
}

PortRoles rolesOf(const std::vector<Port> &ports) {
  PortRoles roles;
  for (const Port &port : ports)
    roles.emplace(port.role(), port.index());
  return roles;
}

bool hasInput(const GraphT &graph, Role role, uint32_t index) {
  return std::ranges::any_of(graph.inputs, [&](const Port &port) {
    return port.role() == role && port.index() == index;
  });
}

bool attentionDrops(const PackageT &package) {
  auto drops = [](const std::unique_ptr<CallT> &call) {
    // Argument 4 of an attention is its dropout.
    return call->operator_ == "chimera::attention" &&
           call->arguments.size() > 4 && !call->arguments[4]->numbers.empty() &&
           call->arguments[4]->numbers[0] > 0;
  };
  return std::ranges::any_of(package.kinds, [&](const auto &kind) {
    return std::ranges::any_of(kind->graphs->forward->calls, drops);
  });
}

uint32_t lossTerms(const PackageT &package) {
  const auto &weight =
      package.kinds[package.layers.back()->kind]->graphs->weight;
  return weight ? static_cast<uint32_t>(weight->outputs.size()) : 0;
}

int64_t stashBytes(const LayerGraphsT &graphs, uint32_t samples) {
  int64_t result = bytesOf(graphs.saved, samples);
  const PortRoles read = rolesOf(graphs.backward->inputs);
  auto add = [&](Role role, const Shapes &tensors) {
    for (uint32_t i = 0; i < tensors.size(); ++i)
      if (read.contains({role, i}))
        result = saturatedSum({result, bytesOf(*tensors[i], samples)});
  };
  add(Role::Input, graphs.inputs);
  add(Role::Label, graphs.labels);
  add(Role::Output, graphs.outputs);
  return result;
}

} // namespace chimera::program
