//===- CheckPackage.cpp - Checks of a package -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CheckGraph.h"
#include "runtime/program/Printable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace chimera::program {

namespace {

// The maximum number of elements of a tensor and of all parameters. No model
// has more. Sizes below this limit can be multiplied by 16 and added without
// overflow.
constexpr int64_t kMaxElements = int64_t{1} << 44;
constexpr size_t kMaxLayers = 1 << 14;
// The maximum number of operations of a graph: such numbers can be added.
constexpr int64_t kMaxOperations = (int64_t{1} << 61) - 1;

using Shapes = std::vector<std::unique_ptr<TensorShapeT>>;

/// The largest of the layer's three numbers of operations.
int64_t mostOperations(const LayerGraphsT &graphs, uint32_t samples) {
  return std::max({operationsFor(graphs.forward_flops, samples),
                   operationsFor(graphs.input_gradient_flops, samples),
                   operationsFor(graphs.weight_gradient_flops, samples)});
}

/// Finds the first error of a package.
class Checker {
public:
  explicit Checker(const PackageT &package) : package(package) {}

  std::string run() {
    if (package.version != kPackageVersion)
      return "expected version " + std::to_string(kPackageVersion) +
             " of the format, got " + std::to_string(package.version) +
             ": export the model again";
    if (package.type > DataType::MAX)
      return "expected a known type in which the layers compute";
    if (package.layers.empty() || package.layers.size() > kMaxLayers ||
        package.kinds.size() > package.layers.size())
      return "expected 1 to " + std::to_string(kMaxLayers) +
             " layers, and no more kinds than layers, got " +
             std::to_string(package.layers.size()) + " and " +
             std::to_string(package.kinds.size());
    checkPrintable(error, "producer", package.producer);
    for (size_t k = 0; k < package.kinds.size() && !error; ++k) {
      error.where = "kind " + std::to_string(k) + ": ";
      checkKind(*package.kinds[k]);
    }
    for (uint32_t k = 0; k < package.layers.size() && !error; ++k) {
      error.where = "layer " + std::to_string(k) + ": ";
      checkLayer(k);
    }
    error.where = "";
    if (!error)
      checkFields();
    if (!error)
      checkNames();
    if (!error && package.tied)
      checkTied();
    return error.text;
  }

private:
  void fail(const std::string &message) { error.fail(message); }

  void checkShape(const std::vector<int64_t> &shape) {
    const bool areGood =
        std::ranges::all_of(shape, [](int64_t extent) { return extent >= 1; });
    if (!areGood || shape.size() > 64 || elementsOf(shape) > kMaxElements)
      fail(
          "expected shapes of extents of at least 1 and at most 2^44 elements");
  }

  void checkShapes(const Shapes &shapes) {
    if (shapes.size() > kMaxValues)
      return fail("expected at most 2^20 tensors");
    for (const auto &shape : shapes) {
      checkTensorType(error, shape->type);
      if (!checkPerSample(error, shape->shape, shape->per_sample))
        return;
      const auto isNegative = [](int64_t number) { return number < 0; };
      if (std::ranges::any_of(shape->shape, isNegative) ||
          std::ranges::any_of(shape->per_sample, isNegative))
        return fail("expected extents that do not shrink with the samples");
      checkShape(shapeFor(*shape, 1));
    }
  }

  void checkStart(const LayerParameterT &parameter) {
    const std::string of = " of parameter '" + printable(parameter.name) + "'";
    if (parameter.start > Initialization::MAX)
      return fail("expected a known start" + of);
    constexpr double kMost = std::numeric_limits<float>::max();
    if (!(parameter.deviation >= 0) || !(parameter.deviation <= kMost))
      fail("expected a finite deviation of at least 0" + of);
    for (double value : {parameter.mean, parameter.low, parameter.high})
      if (!(std::abs(value) <= kMost))
        fail("expected a finite mean and finite bounds" + of);
    const bool hasBounds = parameter.start == Initialization::Uniform ||
                           parameter.start == Initialization::TruncatedNormal;
    if (hasBounds && !(parameter.low < parameter.high))
      fail("expected a lower bound below the upper one" + of);
    // Refuse a range that is completely more than 4 deviations away from the
    // mean. Farther away (about 8 deviations), the error function is 1 at both
    // bounds, so no number could be drawn (drawTruncated).
    const double reach = 4 * parameter.deviation;
    if (parameter.start == Initialization::TruncatedNormal &&
        !(parameter.low < parameter.mean + reach &&
          parameter.high > parameter.mean - reach))
      fail("expected bounds within 4 deviations of the mean" + of);
    if (parameter.zero_row < -1 ||
        (parameter.zero_row >= 0 &&
         (parameter.shape.empty() || parameter.zero_row >= parameter.shape[0])))
      fail("expected -1 or a row that exists as zero_row" + of);
  }

  void checkKind(const LayerKindT &kind) {
    if (kind.parameters.empty() || kind.parameters.size() > kMaxValues)
      return fail("expected at least one parameter");
    std::set<std::string> names;
    for (const auto &parameter : kind.parameters) {
      checkPrintable(error, "parameter's name", parameter->name);
      checkShape(parameter->shape);
      checkStart(*parameter);
      if (parameter->decay > Decay::MAX)
        fail("expected a known decay of parameter '" +
             printable(parameter->name) + "'");
      if (!names.insert(parameter->name).second)
        fail("expected parameters of different names, got two '" +
             printable(parameter->name) + "'");
    }
    for (const auto &constant : kind.constants) {
      checkTensorType(error, constant->type);
      checkShape(constant->shape);
      if (error)
        return;
      const int64_t bytes =
          elementsOf(constant->shape) * bytesOf(constant->type);
      if (constant->bytes.size() != static_cast<uint64_t>(bytes))
        fail("expected " + std::to_string(bytes) +
             " bytes of a constant, got " +
             std::to_string(constant->bytes.size()));
    }
    if (!kind.graphs)
      return fail("expected the graphs of the kind");
    checkGraphs(kind, *kind.graphs);
  }

  void checkGraphs(const LayerKindT &kind, const LayerGraphsT &graphs) {
    for (const Shapes *shapes :
         {&graphs.inputs, &graphs.labels, &graphs.outputs, &graphs.saved,
          &graphs.kept_shapes})
      checkShapes(*shapes);
    if (mostOperations(graphs, 1) > kMaxOperations)
      fail("expected numbers of operations below 2^61");
    checkNative(graphs);
    if (error)
      return;
    if (graphs.inputs.empty() || graphs.outputs.empty())
      return fail("expected at least one input and one output");
    if (graphs.differentiable.size() != graphs.inputs.size())
      return fail("expected an entry of differentiable for each of " +
                  std::to_string(graphs.inputs.size()) + " inputs, got " +
                  std::to_string(graphs.differentiable.size()));
    auto count = [&](Role role) -> size_t {
      switch (role) {
      case Role::Parameter:
      case Role::WeightGradient:
        return kind.parameters.size();
      case Role::Constant:
        return kind.constants.size();
      case Role::Input:
      case Role::InputGradient:
        return graphs.inputs.size();
      case Role::Label:
        return graphs.labels.size();
      case Role::Output:
      case Role::OutputGradient:
        return graphs.outputs.size();
      case Role::Saved:
        return graphs.saved.size();
      }
      return 0;
    };
    const Role given[] = {Role::Parameter, Role::Constant, Role::Input,
                          Role::Label};
    const Role made[] = {Role::Output, Role::Saved};
    const Role givenBack[] = {Role::Parameter,     Role::Constant, Role::Input,
                              Role::Label,         Role::Output,   Role::Saved,
                              Role::OutputGradient};
    const Role madeBack[] = {Role::InputGradient, Role::WeightGradient,
                             Role::Output};
    const std::string before = error.where;
    error.where = before + "forward: ";
    checkGraph(error, *graphs.forward, given, made, count);
    const PortRoles outputs = rolesOf(graphs.forward->outputs);
    for (Role role : made)
      for (uint32_t i = 0; i < count(role) && !error; ++i)
        if (!outputs.contains({role, i}))
          fail(std::string("expected it to make ") + nameOf(role) + " " +
               std::to_string(i));
    if (graphs.weight) {
      const Role labels[] = {Role::Constant, Role::Label};
      const Role weight[] = {Role::Output};
      error.where = before + "weight: ";
      const size_t terms = graphs.weight->outputs.size();
      if (terms < 1 || terms > kMaxLossTerms)
        return fail("expected it to make 1 to " +
                    std::to_string(kMaxLossTerms) + " numbers, got " +
                    std::to_string(terms));
      checkGraph(error, *graphs.weight, labels, weight, [&](Role role) {
        return role == Role::Output ? terms : count(role);
      });
    }
    if (graphs.logits) {
      const Role inputs[] = {Role::Parameter, Role::Constant, Role::Input};
      const Role logits[] = {Role::Output};
      error.where = before + "logits: ";
      checkGraph(error, *graphs.logits, inputs, logits, count);
      if (graphs.logits->outputs.size() != 1 || graphs.vocabulary < 1 ||
          graphs.vocabulary > (1u << 30))
        fail("expected it to make one tensor, of a vocabulary of 1 to 2^30");
    }
    error.where = before + "backward: ";
    checkGraph(error, *graphs.backward, givenBack, madeBack, count);
    if (error)
      return;
    for (const Port &port : graphs.backward->outputs)
      if (port.role() == Role::InputGradient &&
          !graphs.differentiable[port.index()])
        fail("expected no gradient of input " + std::to_string(port.index()) +
             ", which is not differentiable");
    if (graphs.kept_shapes.size() != graphs.kept.size())
      fail("expected a shape for each of " +
           std::to_string(graphs.kept.size()) + " kept values, got " +
           std::to_string(graphs.kept_shapes.size()));
    if (error)
      return;
    std::vector<bool> isThere(graphs.backward->values);
    for (uint32_t value : graphs.kept) {
      if (value >= graphs.backward->values || isThere[value])
        return fail("expected each kept value once, one of the graph's");
      isThere[value] = true;
    }
    error.where = before;
  }

  void checkNative(const LayerGraphsT &graphs) {
    std::set<uint32_t> samples;
    for (const auto &archive : graphs.native) {
      // Check the form of the hash, because it is used as a file name.
      const std::string &hash = archive->sha256;
      if (hash.size() != 64 ||
          hash.find_first_not_of("0123456789abcdef") != std::string::npos)
        fail("expected the SHA-256 of native code to be 64 hexadecimal digits, "
             "got '" +
             printable(hash.substr(0, 70)) + "'");
      if (!samples.insert(archive->samples).second)
        fail("expected native code once for each number of samples, got two "
             "for " +
             std::to_string(archive->samples));
    }
  }

  static bool makesOutput(const GraphT &graph) {
    return std::ranges::any_of(graph.outputs, [](const Port &port) {
      return port.role() == Role::Output;
    });
  }

  void checkLayer(uint32_t number) {
    const LayerT &layer = *package.layers[number];
    if (layer.kind >= package.kinds.size())
      return fail("expected one of " + std::to_string(package.kinds.size()) +
                  " kinds, got " + std::to_string(layer.kind));
    checkPrintable(error, "path", layer.path);
    const bool isLast = number + 1 == package.layers.size();
    const LayerGraphsT &graphs = graphsOf(package, number);
    if (!isLast && graphs.weight)
      return fail("expected a weight only in the last layer");
    if (!isLast && graphs.logits)
      return fail("expected logits only in the last layer");
    if (!isLast && !graphs.labels.empty())
      return fail("expected labels only in the last layer");
    if (!isLast && makesOutput(*graphs.backward))
      return fail("expected a loss from the backward only in the last layer");
    const auto &outputs = graphs.outputs;
    if (isLast && (outputs.size() != 1 || !outputs[0]->shape.empty() ||
                   (outputs[0]->type != TensorType::Float32 &&
                    outputs[0]->type != TensorType::Float64)))
      return fail("expected the last layer to make only the loss, one number "
                  "of float32 or float64");
    if (number == 0) {
      if (std::ranges::any_of(graphs.differentiable,
                              [](uint8_t is) { return is != 0; }))
        return fail("expected no differentiable inputs of the first layer");
    } else if (!areEqual(graphsOf(package, number - 1).outputs,
                         graphs.inputs)) {
      return fail("expected inputs equal to the outputs of the layer before");
    }
    // A part of a micro-batch uses a slice of the buffer of the micro-batch. So
    // the bytes must be proportional to the number of samples.
    for (const Shapes *shapes : {&graphs.inputs, &graphs.labels})
      if (package.divisible && !std::ranges::all_of(*shapes, isProportional))
        return fail("expected boundaries whose bytes grow with the samples, "
                    "because micro-batches may be divided into parts");
  }

  /// Whether the size of a tensor is proportional to the number of samples:
  /// exactly one extent depends on this number, and it has no constant.
  static bool isProportional(const std::unique_ptr<TensorShapeT> &tensor) {
    int64_t count = 0;
    for (size_t i = 0; i < tensor->per_sample.size(); ++i)
      if (tensor->per_sample[i] != 0)
        count += tensor->shape[i] == 0 ? 1 : 2;
    return count == 1;
  }

  /// Whether the tensor has a row for each sample: its first extent is the
  /// number of samples, on which no other extent depends.
  static bool hasRows(const TensorShapeT &tensor) {
    const std::vector<int64_t> &perSample = tensor.per_sample;
    return !perSample.empty() && tensor.shape[0] == 0 && perSample[0] == 1 &&
           std::count(perSample.begin(), perSample.end(), 0) + 1 ==
               std::ssize(perSample);
  }

  static bool areEqual(const Shapes &left, const Shapes &right) {
    return std::ranges::equal(left, right, [](const auto &a, const auto &b) {
      return a->type == b->type && a->shape == b->shape &&
             a->per_sample == b->per_sample;
    });
  }

  /// Checks the inputs of the first layer and the labels of the last layer. A
  /// data source provides them, with one row for each sample.
  void checkFields() {
    const auto check =
        [&](const char *what, const std::vector<std::string> &names,
            const Shapes LayerGraphsT::*tensors, uint32_t layer) {
          std::set<std::string> known;
          for (const std::string &name : names) {
            checkPrintable(error, what, name);
            if (!known.insert(name).second)
              fail(std::string("expected one ") + what + " '" +
                   printable(name) + "', got two");
          }
          const Shapes &shapes = graphsOf(package, layer).*tensors;
          if (shapes.size() != names.size())
            return fail(std::string("expected a name for each ") + what +
                        ", got " + std::to_string(names.size()) + " for " +
                        std::to_string(shapes.size()));
          for (const auto &shape : shapes)
            if (!hasRows(*shape))
              return fail(std::string("expected each ") + what +
                          " to have a row for each sample");
        };
    const auto last = static_cast<uint32_t>(package.layers.size() - 1);
    check("input", package.inputs, &LayerGraphsT::inputs, 0);
    check("label", package.labels, &LayerGraphsT::labels, last);
    if (error)
      return;
    const uint32_t terms = lossTerms(package);
    for (size_t i = 0; i < package.labels.size(); ++i)
      if (package.labels[i] == kLossScales &&
          (terms < 2 || i + 1 < package.labels.size()))
        fail(std::string("expected ") + kLossScales +
             " as the last label of a loss of several terms alone");
    if (terms < 2)
      return;
    const LayerGraphsT &graphs = graphsOf(package, last);
    if (package.labels.empty() || package.labels.back() != kLossScales ||
        graphs.labels.back()->type != graphs.outputs[0]->type ||
        shapeFor(*graphs.labels.back(), 1) != std::vector<int64_t>{1, terms} ||
        hasInput(*graphs.weight, Role::Label,
                 static_cast<uint32_t>(package.labels.size() - 1)))
      fail(std::string("expected the last label of a loss of ") +
           std::to_string(terms) + " terms to be " + kLossScales +
           ", numbers of the loss's type for each sample and term");
  }

  /// Names must be unique, because they name tensors in files of weights.
  void checkNames() {
    std::set<std::string> names;
    int64_t elements = 0;
    for (uint32_t k = 0; k < package.layers.size(); ++k) {
      const auto &parameters = kindOf(package, k).parameters;
      for (uint32_t i = 0; i < parameters.size(); ++i) {
        elements += elementsOf(parameters[i]->shape);
        if (elements > kMaxElements)
          return fail("expected at most 2^44 parameters");
        const bool isTied = package.tied && k + 1 == package.layers.size() &&
                            i == package.tied->last();
        std::string name = package.layers[k]->path + parameters[i]->name;
        if (!isTied && !names.insert(name).second)
          return fail("expected parameters of different names, got two '" +
                      printable(name) + "'");
      }
    }
  }

  void checkTied() {
    const auto last = static_cast<uint32_t>(package.layers.size() - 1);
    const auto &inFirst = kindOf(package, 0).parameters;
    const auto &inLast = kindOf(package, last).parameters;
    if (last == 0 || package.tied->first() >= inFirst.size() ||
        package.tied->last() >= inLast.size() ||
        inFirst[package.tied->first()]->shape !=
            inLast[package.tied->last()]->shape)
      fail("expected a tied parameter of the first layer and of the last one, "
           "of one shape");
  }

  const PackageT &package;
  FirstError error;
};

} // namespace

std::string checkPackage(const PackageT &package) {
  return Checker(package).run();
}

std::string checkSamples(const PackageT &package, uint32_t samples) {
  if (samples < 1 || samples > kMaxSamples)
    return "expected 1 to " + std::to_string(kMaxSamples) +
           " samples in a micro-batch, got " + std::to_string(samples);
  const std::string ofThese =
      std::to_string(samples) + " samples in a micro-batch need ";
  for (const auto &kind : package.kinds) {
    const LayerGraphsT &graphs = *kind->graphs;
    if (mostOperations(graphs, samples) > kMaxOperations)
      return "expected less than 2^61 operations in a layer, but " + ofThese +
             "more: use fewer";
    for (const Shapes *shapes :
         {&graphs.inputs, &graphs.labels, &graphs.outputs, &graphs.saved,
          &graphs.kept_shapes})
      for (const auto &tensor : *shapes)
        if (elementsOf(shapeFor(*tensor, samples)) > kMaxElements)
          return "expected tensors of at most 2^44 elements, but " + ofThese +
                 "larger ones: use fewer";
  }
  return "";
}

} // namespace chimera::program
