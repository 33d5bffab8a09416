//===- SamplePackages.cpp - Exported models made by hand ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/SamplePackages.h"

#include "runtime/program/Layers.h"

namespace chimera::program {

std::unique_ptr<TensorShapeT> perSample(TensorType type,
                                        const std::vector<int64_t> &shape) {
  auto made = std::make_unique<TensorShapeT>();
  made->type = type;
  made->shape = shape;
  made->shape.insert(made->shape.begin(), 0);
  made->per_sample.resize(made->shape.size());
  made->per_sample[0] = 1;
  return made;
}

void setFields(
    std::vector<std::unique_ptr<TensorShapeT>> &tensors,
    const std::vector<std::pair<TensorType, std::vector<int64_t>>> &fields) {
  tensors.clear();
  for (const auto &[type, shape] : fields)
    tensors.push_back(perSample(type, shape));
}

namespace {

std::unique_ptr<ArgumentT> value(int32_t number) {
  auto made = std::make_unique<ArgumentT>();
  made->kind = ArgumentKind::Value;
  made->values = {number};
  return made;
}
std::unique_ptr<ArgumentT> none() { return std::make_unique<ArgumentT>(); }
std::unique_ptr<ArgumentT> integer(int64_t number) {
  auto made = std::make_unique<ArgumentT>();
  made->kind = ArgumentKind::Integer;
  made->integers = {number};
  return made;
}
std::unique_ptr<ArgumentT> integers(std::vector<int64_t> numbers,
                                    std::vector<int64_t> perSample = {}) {
  auto made = std::make_unique<ArgumentT>();
  made->kind = ArgumentKind::Integers;
  made->integers = std::move(numbers);
  made->per_sample = std::move(perSample);
  return made;
}
std::unique_ptr<ArgumentT> boolean(bool is) {
  auto made = std::make_unique<ArgumentT>();
  made->kind = ArgumentKind::Boolean;
  made->integers = {is};
  return made;
}

template <typename... Arguments>
std::unique_ptr<CallT> call(const char *name, const char *overload,
                            int32_t result, Arguments... arguments) {
  auto made = std::make_unique<CallT>();
  made->operator_ = name;
  made->overload = overload;
  (made->arguments.push_back(std::move(arguments)), ...);
  made->results = {result};
  return made;
}

template <typename... Calls>
std::unique_ptr<GraphT> graph(uint32_t values, std::vector<Port> inputs,
                              std::vector<Port> outputs, Calls... calls) {
  auto made = std::make_unique<GraphT>();
  made->values = values;
  made->inputs = std::move(inputs);
  made->outputs = std::move(outputs);
  (made->calls.push_back(std::move(calls)), ...);
  return made;
}

std::unique_ptr<LayerGraphsT> graphs() {
  auto made = std::make_unique<LayerGraphsT>();
  made->forward_flops = made->weight_gradient_flops = Operations(0, 10, 0);
  made->input_gradient_flops = Operations(0, 8, 0);
  return made;
}

std::unique_ptr<LayerKindT> kind(const char *name, std::vector<int64_t> extents,
                                 Initialization start) {
  auto made = std::make_unique<LayerKindT>();
  auto parameter = std::make_unique<LayerParameterT>();
  parameter->name = name;
  parameter->shape = std::move(extents);
  parameter->start = start;
  parameter->deviation = start == Initialization::Normal ? 0.5 : 0;
  made->parameters.push_back(std::move(parameter));
  return made;
}

std::unique_ptr<TensorShapeT> activation() {
  return perSample(TensorType::Float64, {2, 3});
}
std::unique_ptr<TensorShapeT> tokens() {
  return perSample(TensorType::Int64, {2});
}

/// The kept values of a split backward: value `first`, an input, and the next
/// value, an output gradient.
void keep(LayerGraphsT &graphs, uint32_t first) {
  graphs.kept = {first, first + 1};
  graphs.kept_shapes.push_back(
      std::make_unique<TensorShapeT>(*graphs.inputs[0]));
  graphs.kept_shapes.push_back(
      std::make_unique<TensorShapeT>(*graphs.outputs[0]));
}

std::unique_ptr<LayerGraphsT> embedding() {
  auto made = graphs();
  made->inputs.push_back(tokens());
  made->differentiable = {0};
  made->outputs.push_back(activation());
  made->input_gradient_flops = Operations();
  made->forward = graph(3, {{0, 0, Role::Parameter}, {1, 0, Role::Input}},
                        {{2, 0, Role::Output}},
                        call("aten::embedding", "", 2, value(0), value(1),
                             integer(-1), boolean(false), boolean(false)));
  made->backward =
      graph(3, {{0, 0, Role::Input}, {1, 0, Role::OutputGradient}},
            {{2, 0, Role::WeightGradient}},
            call("aten::embedding_dense_backward", "", 2, value(1), value(0),
                 integer(5), integer(-1), boolean(false)));
  keep(*made, 0);
  return made;
}

/// The backward graph of a product with a parameter. Its values: 0 parameter, 1
/// input, 2 output gradient, 3 input gradient, 4 output gradient * input, 5
/// weight gradient.
std::unique_ptr<GraphT> backwardOfProduct() {
  return graph(6,
               {{0, 0, Role::Parameter},
                {1, 0, Role::Input},
                {2, 0, Role::OutputGradient}},
               {{3, 0, Role::InputGradient}, {5, 0, Role::WeightGradient}},
               call("aten::mul", "Tensor", 3, value(2), value(0)),
               call("aten::mul", "Tensor", 4, value(2), value(1)),
               call("aten::sum", "dim_IntList", 5, value(4), integers({0, 1}),
                    boolean(false), none()));
}

std::unique_ptr<LayerGraphsT> scaling() {
  auto made = graphs();
  made->inputs.push_back(activation());
  made->differentiable = {1};
  made->outputs.push_back(activation());
  made->forward = graph(3, {{0, 0, Role::Parameter}, {1, 0, Role::Input}},
                        {{2, 0, Role::Output}},
                        call("aten::mul", "Tensor", 2, value(1), value(0)));
  made->backward = backwardOfProduct();
  keep(*made, 1);
  return made;
}

std::unique_ptr<LayerGraphsT> loss() {
  auto made = graphs();
  made->inputs.push_back(activation());
  made->differentiable = {1};
  made->labels.push_back(tokens());
  made->outputs.push_back(std::make_unique<TensorShapeT>());
  made->outputs[0]->type = TensorType::Float64;
  made->forward = graph(4, {{0, 0, Role::Parameter}, {1, 0, Role::Input}},
                        {{3, 0, Role::Output}},
                        call("aten::mul", "Tensor", 2, value(1), value(0)),
                        call("aten::sum", "", 3, value(2), none()));
  // The gradient of the sum's result is one number. Expand it to the shape of
  // the sum's input.
  made->backward = backwardOfProduct();
  made->backward->values = 7;
  made->backward->outputs[0].mutate_value(6);
  made->backward->calls.push_back(call("aten::expand", "", 6, value(3),
                                       integers({0, 2, 3}, {1, 0, 0}),
                                       boolean(false)));
  keep(*made, 1);
  return made;
}

std::unique_ptr<LayerT> layer(uint32_t kind, const char *path) {
  auto made = std::make_unique<LayerT>();
  made->kind = kind;
  made->path = path;
  return made;
}

} // namespace

std::unique_ptr<PackageT> samplePackage() {
  auto package = std::make_unique<PackageT>();
  package->version = kPackageVersion;
  package->producer = "a test";
  package->type = DataType::Float64;
  package->inputs = {"tokens"};
  package->labels = {"targets"};
  package->kinds.push_back(kind("weight", {5, 3}, Initialization::Normal));
  package->kinds.push_back(kind("scale", {3}, Initialization::Ones));
  package->kinds.push_back(kind("factors", {3}, Initialization::Normal));
  package->kinds[0]->graphs = embedding();
  package->kinds[1]->graphs = scaling();
  package->kinds[2]->graphs = loss();
  package->layers.push_back(layer(0, "embedding."));
  package->layers.push_back(layer(1, "block."));
  package->layers.push_back(layer(2, ""));
  return package;
}

std::unique_ptr<PackageT> weighedPackage() {
  auto package = samplePackage();
  package->kinds[2]->graphs->weight =
      graph(2, {{0, 0, Role::Label}}, {{1, 0, Role::Output}},
            call("aten::sum", "", 1, value(0), none()));
  return package;
}

std::unique_ptr<PackageT> packageWithTwoLossTerms() {
  auto package = weighedPackage();
  package->labels.push_back(kLossScales);
  LayerGraphsT &graphs = *package->kinds[2]->graphs;
  graphs.labels.push_back(perSample(TensorType::Float64, {2}));
  // The first weight is the number of labels. The second weight is their sum.
  graphs.weight->values = 4;
  graphs.weight->calls.push_back(
      call("aten::eq", "Tensor", 2, value(0), value(0)));
  graphs.weight->calls.push_back(call("aten::sum", "", 3, value(2), none()));
  graphs.weight->outputs = {{3, 0, Role::Output}, {1, 1, Role::Output}};
  return package;
}

} // namespace chimera::program
