//===- Layer.cpp - One layer of a PyTorch model ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/exported/Layer.h"

#include "runtime/stage/torch/TensorOver.h"

#include <ATen/ATen.h>

#include <cstring>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using program::GraphT;
using program::Port;
using program::Role;
using Tensors = std::vector<Tensor>;

static Tensor tensorOf(const program::ConstantT &constant, at::Device device) {
  Tensor tensor = at::empty(constant.shape, torchTypeOf(constant.type));
  std::memcpy(tensor.data_ptr(), constant.bytes.data(), constant.bytes.size());
  return tensor.to(device);
}

/// The values of a graph's ports of some roles.
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

Layer::Layer(const program::LayerKindT &kind,
             const program::LayerGraphsT &graphs, const Place &place)
    : graphs(graphs), device(deviceOf(place)),
      forwards(*graphs.forward, device), backwards(*graphs.backward, device) {
  for (const auto &constant : kind.constants)
    constants.push_back(tensorOf(*constant, device));

  std::vector<uint32_t> all;
  for (const Port &port : graphs.forward->inputs)
    all.push_back(port.value());
  const std::vector<Port> &made = graphs.forward->outputs;
  // What a stash holds: outputs that the backward takes too.
  std::vector<uint32_t> saved = valuesOf(made, Role::Saved);
  for (const Port &port : made)
    if (port.role() == Role::Output &&
        takes(*graphs.backward, Role::Output, port.index()))
      saved.push_back(port.value());
  const std::vector<uint32_t> outputs = valuesOf(made, Role::Output);
  outputsAlone = forwards.select(all, outputs, /*adds=*/false);
  savedAlone = forwards.select(all, saved, /*adds=*/false);
  outputsAndSaved =
      forwards.select(all, together(saved, outputs), /*adds=*/false);

  if (graphs.logits) {
    all.clear();
    for (const Port &port : graphs.logits->inputs)
      all.push_back(port.value());
    logitsAlone.emplace(*graphs.logits, device);
    selectedLogits = logitsAlone->select(
        all, {graphs.logits->outputs[0].value()}, /*adds=*/false);
  }

  const GraphT &backward = *graphs.backward;
  all.clear();
  for (const Port &port : backward.inputs)
    all.push_back(port.value());
  const std::vector<uint32_t> gradients =
      valuesOf(backward.outputs, Role::InputGradient);
  wholeBackward = backwards.select(all, gradients, /*adds=*/true);
  inputHalf = backwards.select(all, together(gradients, graphs.kept),
                               /*adds=*/false);
  weightHalf = backwards.select(
      together(graphs.kept,
               valuesOf(backward.inputs, Role::Parameter, Role::Constant)),
      {}, /*adds=*/true);
}

/// Sets the values of parameters and constants.
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
  logitsAlone->run(selectedLogits, values, context);
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
      if (takes(*graphs.backward, role, i))
        to[i] = from[i];
  };
  if (stashed) {
    keep(Role::Input, stashed->inputs, inputs);
    keep(Role::Label, stashed->labels, labels);
  }
  inputs.clear();
  forwards.run(stashed ? (wantsOutputs ? outputsAndSaved : savedAlone)
                       : outputsAlone,
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
      if (stashed && takes(*graphs.backward, Role::Output, port.index()))
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
  // From here on the values alone keep them alive.
  stashed = {};
  outputGradients.clear();
  return values;
}

/// As the layer before takes them.
Tensors Layer::inputGradientsOf(Executable::Values &values) const {
  Tensors gradients(graphs.inputs.size());
  for (const Port &port : graphs.backward->outputs)
    if (port.role() == Role::InputGradient)
      gradients[port.index()] = values[port.value()].contiguous();
  // What nothing depends on has no gradient.
  for (uint32_t i = 0; i < gradients.size(); ++i)
    if (graphs.differentiable[i] && !gradients[i].defined())
      gradients[i] = at::zeros(
          graphs.inputs[i]->shape,
          at::dtype(torchTypeOf(graphs.inputs[i]->type)).device(device));
  return gradients;
}

Tensors Layer::backward(Executable::Context context, const Tensors &parameters,
                        ForBackward stashed, Tensors outputGradients,
                        std::vector<GradientSum *> sums) const {
  Executable::Values values =
      valuesOfBackward(parameters, stashed, outputGradients);
  context.sums = std::move(sums);
  backwards.run(wholeBackward, values, context);
  return inputGradientsOf(values);
}

Tensors Layer::inputGradient(Executable::Context context,
                             const Tensors &parameters, ForBackward stashed,
                             Tensors outputGradients, Tensors &rest) const {
  Executable::Values values =
      valuesOfBackward(parameters, stashed, outputGradients);
  backwards.run(inputHalf, values, context);
  rest.clear();
  for (uint32_t value : graphs.kept)
    rest.push_back(values[value]);
  return inputGradientsOf(values);
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
  backwards.run(weightHalf, values, context);
}
