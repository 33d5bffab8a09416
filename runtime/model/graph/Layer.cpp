//===- Layer.cpp - A layer of a model -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Layer.h"

#include "runtime/model/tensors/TensorOver.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using program::GraphT;
using program::Port;
using program::Role;
using Tensors = std::vector<Tensor>;

Tensors chimera::runtime::constantsOf(const program::LayerKindT &kind,
                                      at::Device device) {
  Tensors tensors;
  for (const auto &constant : kind.constants) {
    Tensor tensor = at::empty(constant->shape, torchTypeOf(constant->type));
    std::memcpy(tensor.data_ptr(), constant->bytes.data(),
                constant->bytes.size());
    tensors.push_back(tensor.to(device));
  }
  return tensors;
}

/// The value numbers of those ports that have one of `roles`.
template <typename... Roles>
static std::vector<uint32_t> valuesOf(const std::vector<Port> &ports,
                                      Roles... roles) {
  std::vector<uint32_t> values;
  for (const Port &port : ports)
    if (((port.role() == roles) || ...))
      values.push_back(port.value());
  return values;
}

static std::vector<uint32_t> together(std::vector<uint32_t> list,
                                      const std::vector<uint32_t> &more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

Layer::Layer(const program::LayerKindT &kind, const Tensors &constants,
             uint32_t samples, const DevicePlacement &placement,
             const NativeCode *native)
    : graphs(*kind.graphs), samples(samples), device(deviceOf(placement)),
      constants(constants), forwards(*graphs.forward, samples, device),
      backwards(*graphs.backward, samples, device) {
  std::vector<uint32_t> all;
  for (const Port &port : graphs.forward->inputs)
    all.push_back(port.value());
  const std::vector<Port> &made = graphs.forward->outputs;
  // The backward also reads some outputs of the forward. So the stash keeps
  // these outputs too.
  std::vector<uint32_t> saved = valuesOf(made, Role::Saved);
  const program::PortRoles read = program::rolesOf(graphs.backward->inputs);
  for (const Port &port : made)
    if (port.role() == Role::Output &&
        read.contains({Role::Output, port.index()}))
      saved.push_back(port.value());
  const std::vector<uint32_t> outputs = valuesOf(made, Role::Output);
  outputsOnly = select(forwards, "outputs", native, all, outputs, {});
  savedOnly = select(forwards, "saved", native, all, saved, {});
  outputsAndSaved =
      select(forwards, "forward", native, all, together(saved, outputs), {});

  if (graphs.logits) {
    all.clear();
    for (const Port &port : graphs.logits->inputs)
      all.push_back(port.value());
    logitsAlone.emplace(*graphs.logits, samples, device);
    logitsSubgraph = logitsAlone->selectSubgraph(
        all, {graphs.logits->outputs[0].value()}, /*adds=*/false);
  }

  const GraphT &backward = *graphs.backward;
  all.clear();
  for (const Port &port : backward.inputs)
    all.push_back(port.value());
  const std::vector<uint32_t> results =
      valuesOf(backward.outputs, Role::InputGradient, Role::Output);
  for (const Port &port : backward.outputs)
    if (port.role() == Role::Output)
      lossOfBackward = port.value();
  const std::vector<uint32_t> ofWeights =
      valuesOf(backward.outputs, Role::WeightGradient);
  wholeBackward =
      select(backwards, "backward", native, all, results, ofWeights);
  inputHalf = select(backwards, "input_half", native, all,
                     together(results, graphs.kept), {});
  weightHalf =
      select(backwards, "weight_half", native,
             together(graphs.kept, valuesOf(backward.inputs, Role::Parameter,
                                            Role::Constant)),
             {}, ofWeights);
}

/// The subgraph that computes `wanted` from `given` and adds `weightGradients`
/// to their sums. tools/export/chimera_export/native.py compiles the same
/// subgraphs under the same names.
Layer::CallableSubgraph
Layer::select(const Executable &executable, const char *name,
              const NativeCode *native, const std::vector<uint32_t> &given,
              const std::vector<uint32_t> &wanted,
              const std::vector<uint32_t> &weightGradients) const {
  auto has = [](const std::vector<uint32_t> &list, uint32_t value) {
    return std::ranges::find(list, value) != list.end();
  };
  CallableSubgraph callable;
  callable.subgraph = executable.selectSubgraph(
      given, wanted, /*adds=*/!weightGradients.empty());
  callable.inputs = given;
  for (uint32_t value : together(wanted, weightGradients))
    if (!has(given, value) && !has(callable.results, value))
      callable.results.push_back(value);
  for (uint32_t value : given)
    if (has(wanted, value))
      callable.usedLater.push_back(value);
  if (native)
    callable.native = native->loadFunction(
        graphs, samples, name, callable.inputs.size(), callable.results.size());
  return callable;
}

void Layer::run(const Executable &executable, const CallableSubgraph &callable,
                Executable::Values &values,
                const Executable::Context &context) {
  if (!callable.native)
    return executable.run(callable.subgraph, values, context);
  for (uint32_t value : callable.subgraph.addedFirst)
    executable.addToGradientSums(value, values, context);
  Tensors inputs, usedLater;
  for (uint32_t value : callable.usedLater)
    usedLater.push_back(values[value]);
  // Move the arguments, so that the native code can free each of them after its
  // last use.
  for (uint32_t value : callable.inputs)
    inputs.push_back(std::move(values[value]));
  Tensors results = callable.native->run(std::move(inputs));
  for (size_t i = 0; i < usedLater.size(); ++i)
    values[callable.usedLater[i]] = std::move(usedLater[i]);
  for (size_t i = 0; i < results.size(); ++i) {
    values[callable.results[i]] = std::move(results[i]);
    if (callable.subgraph.adds)
      executable.addToGradientSums(callable.results[i], values, context);
  }
}

/// Sets the values of the layer's parameters and constants.
void Layer::bindOwn(const GraphT &graph, Executable::Values &values,
                    const Tensors &parameters) const {
  for (const Port &port : graph.inputs)
    if (port.role() == Role::Parameter)
      values[port.value()] = parameters[port.index()];
    else if (port.role() == Role::Constant)
      values[port.value()] = constants[port.index()];
}

Tensor Layer::logits(const Executable::Context &context,
                     const Tensors &parameters, const Tensors &inputs) const {
  Executable::Values values = logitsAlone->makeValues();
  bindOwn(*graphs.logits, values, parameters);
  for (const Port &port : graphs.logits->inputs)
    if (port.role() == Role::Input)
      values[port.value()] = inputs[port.index()];
  logitsAlone->run(logitsSubgraph, values, context);
  return values[graphs.logits->outputs[0].value()];
}

Tensors Layer::forward(const Executable::Context &context,
                       const Tensors &parameters, Tensors inputs,
                       const Tensors &labels, bool wantsOutputs,
                       ForBackward *stashed) const {
  const GraphT &graph = *graphs.forward;
  Executable::Values values = forwards.makeValues();
  bindOwn(graph, values, parameters);
  for (const Port &port : graph.inputs)
    if (port.role() == Role::Input)
      values[port.value()] = inputs[port.index()];
    else if (port.role() == Role::Label)
      values[port.value()] = labels[port.index()];
  auto keep = [&](Role role, Tensors &to, const Tensors &from) {
    to.resize(from.size());
    for (uint32_t i = 0; i < from.size(); ++i)
      if (hasInput(*graphs.backward, role, i))
        to[i] = from[i];
  };
  if (stashed) {
    keep(Role::Input, stashed->inputs, inputs);
    keep(Role::Label, stashed->labels, labels);
  }
  inputs.clear();
  run(forwards,
      stashed ? (wantsOutputs ? outputsAndSaved : savedOnly) : outputsOnly,
      values, context);

  Tensors outputs(graphs.outputs.size());
  if (stashed) {
    stashed->outputs.resize(graphs.outputs.size());
    stashed->saved.resize(graphs.saved.size());
  }
  for (const Port &port : graph.outputs) {
    Tensor &value = values[port.value()];
    if (port.role() == Role::Output) {
      if (wantsOutputs)
        outputs[port.index()] = value;
      if (stashed && hasInput(*graphs.backward, Role::Output, port.index()))
        stashed->outputs[port.index()] = value;
    } else if (stashed) {
      stashed->saved[port.index()] = value;
    }
  }
  return outputs;
}

Executable::Values Layer::valuesOfBackward(const Tensors &parameters,
                                           ForBackward &stashed,
                                           Tensors &outputGradients) const {
  Executable::Values values = backwards.makeValues();
  bindOwn(*graphs.backward, values, parameters);
  for (const Port &port : graphs.backward->inputs) {
    auto take = [&](Tensors &from) {
      values[port.value()] = std::move(from[port.index()]);
    };
    switch (port.role()) {
    case Role::Input:
      take(stashed.inputs);
      break;
    case Role::Label:
      take(stashed.labels);
      break;
    case Role::Output:
      take(stashed.outputs);
      break;
    case Role::Saved:
      take(stashed.saved);
      break;
    case Role::OutputGradient:
      take(outputGradients);
      break;
    default:
      break;
    }
  }
  // Now only `values` owns these tensors, so each can be freed after its last
  // use.
  stashed = {};
  outputGradients.clear();
  return values;
}

/// The gradients of the inputs are contiguous, as the backward of the previous
/// layer requires.
Layer::BackwardResults Layer::resultsOf(Executable::Values &values) const {
  Tensors gradients(graphs.inputs.size());
  for (const Port &port : graphs.backward->outputs)
    if (port.role() == Role::InputGradient)
      gradients[port.index()] = values[port.value()].contiguous();
  // If no result depends on an input, the gradient of this input is zero.
  for (uint32_t i = 0; i < gradients.size(); ++i)
    if (graphs.differentiable[i] && !gradients[i].defined())
      gradients[i] = at::zeros(
          program::shapeFor(*graphs.inputs[i], samples),
          at::dtype(torchTypeOf(graphs.inputs[i]->type)).device(device));
  return {std::move(gradients),
          lossOfBackward ? values[*lossOfBackward] : Tensor()};
}

Layer::BackwardResults Layer::backward(Executable::Context context,
                                       const Tensors &parameters,
                                       ForBackward stashed,
                                       Tensors outputGradients,
                                       std::vector<GradientSum *> sums) const {
  Executable::Values values =
      valuesOfBackward(parameters, stashed, outputGradients);
  context.sums = std::move(sums);
  run(backwards, wholeBackward, values, context);
  return resultsOf(values);
}

Layer::BackwardResults Layer::inputGradient(Executable::Context context,
                                            const Tensors &parameters,
                                            ForBackward stashed,
                                            Tensors outputGradients,
                                            Tensors &rest) const {
  Executable::Values values =
      valuesOfBackward(parameters, stashed, outputGradients);
  run(backwards, inputHalf, values, context);
  rest.clear();
  for (uint32_t value : graphs.kept)
    rest.push_back(values[value]);
  return resultsOf(values);
}

void Layer::weightGradient(Executable::Context context,
                           const Tensors &parameters, Tensors rest,
                           std::vector<GradientSum *> sums) const {
  Executable::Values values = backwards.makeValues();
  bindOwn(*graphs.backward, values, parameters);
  for (size_t i = 0; i < rest.size(); ++i)
    values[graphs.kept[i]] = std::move(rest[i]);
  rest.clear();
  context.sums = std::move(sums);
  run(backwards, weightHalf, values, context);
}
