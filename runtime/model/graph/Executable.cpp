//===- Executable.cpp - A graph that can be executed ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Executable.h"

#include "runtime/model/tensors/Products.h"

#include <ATen/ATen.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <map>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using c10::IValue;

Executable::Executable(const program::GraphT &graph, uint32_t samples,
                       at::Device device)
    : graph(graph), samples(samples), device(device), maker(graph.values, -1),
      uses(graph.values), gradientOf(graph.values), fused(graph.calls.size()) {
  uint32_t sites = 0;
  for (uint32_t i = 0; i < graph.calls.size(); ++i) {
    operations.push_back(find(*graph.calls[i], sites));
    for (int32_t value : graph.calls[i]->results)
      if (value >= 0)
        maker[static_cast<uint32_t>(value)] = static_cast<int32_t>(i);
    for (const Argument &argument : operations.back().arguments)
      for (int32_t value : argument.values)
        if (value >= 0)
          ++uses[static_cast<uint32_t>(value)];
  }
  for (const program::Port &port : graph.outputs) {
    ++uses[port.value()];
    if (port.role() == program::Role::WeightGradient)
      gradientOf[port.value()].push_back(port.index());
  }
  findSums();
  findAddends();
}

Executable::Operation Executable::find(const program::CallT &call,
                                       uint32_t &sites) const {
  Operation operation(findOperator(call));
  operation.arguments =
      argumentsOf(call, operation.handle.schema(), samples, device);
  operation.check = checkOf(call.operator_);
  auto isValue = [&](size_t i) {
    return operation.arguments[i].kind == Argument::Kind::Value;
  };
  // Refuse scale_grad_by_freq (argument 4): with it, the kernel counts indices
  // without checking their range.
  if (call.operator_ == "aten::embedding_dense_backward" &&
      (isValue(4) || !operation.arguments[4].constant.isBool() ||
       operation.arguments[4].constant.toBool()))
    throw std::invalid_argument("expected an embedding whose gradient is not "
                                "scaled by how often a token occurs");
  auto isOne = [&](size_t i) {
    const IValue &constant = operation.arguments[i].constant;
    return !isValue(i) && constant.isScalar() &&
           constant.toScalar().toDouble() == 1;
  };
  operation.own = makeOwnCall(call, operation.arguments, sites);
  if (call.operator_ == "aten::mm" && call.overload.empty() && isValue(0) &&
      isValue(1)) {
    operation.implementation = Implementation::Product;
  } else if (call.operator_ == "aten::addmm" && call.overload.empty() &&
             isValue(0) && isValue(1) && isValue(2) && isOne(3) && isOne(4)) {
    operation.implementation = Implementation::ProductWithBias;
  } else if (call.operator_ == "aten::add" && call.overload == "Tensor" &&
             isValue(0) && isValue(1) && isOne(2)) {
    operation.implementation = Implementation::Sum;
  } else if ((call.operator_ == "aten::view" ||
              call.operator_ == "aten::_unsafe_view") &&
             call.overload.empty() && isValue(0) &&
             operation.arguments[1].constant.isIntList()) {
    operation.implementation = Implementation::View;
  }
  return operation;
}

bool Executable::isTranspose(uint32_t call) const {
  return graph.calls[call]->operator_ == "aten::t" &&
         operations[call].arguments[0].kind == Argument::Kind::Value;
}

/// Finds each product whose result, or its transpose, is the gradient of
/// exactly one parameter and has no other use. Also finds each own call whose
/// summedResult() is such a gradient.
void Executable::findSums() {
  for (uint32_t output = 0; output < graph.values; ++output) {
    if (gradientOf[output].size() != 1)
      continue;
    uint32_t value = output;
    bool isTransposed = false;
    while (uses[value] == 1 && maker[value] >= 0 &&
           isTranspose(static_cast<uint32_t>(maker[value]))) {
      value =
          static_cast<uint32_t>(operations[static_cast<uint32_t>(maker[value])]
                                    .arguments[0]
                                    .values[0]);
      isTransposed = !isTransposed;
    }
    if (uses[value] != 1 || maker[value] < 0)
      continue;
    const auto call = static_cast<uint32_t>(maker[value]);
    const Operation &operation = operations[call];
    const std::optional<size_t> summed = operation.own && !isTransposed
                                             ? operation.own->summedResult()
                                             : std::nullopt;
    if (operation.implementation == Implementation::Product ||
        (summed &&
         graph.calls[call]->results[*summed] == static_cast<int32_t>(value)))
      fused[call] = FusedSum{gradientOf[output][0], isTransposed};
  }
}

/// Finds each operator that may add many numbers to one, if its result is a
/// weight gradient and has no other use.
void Executable::findAddends() {
  static const std::map<std::string, std::vector<size_t>> known = {
      {"aten::_unsafe_index_put", {0, 2}},
      {"aten::embedding_dense_backward", {0}},
      {"aten::index_add", {0, 3}},
      {"aten::index_put", {0, 2}},
      {"aten::scatter_add", {0, 3}},
  };
  for (uint32_t value = 0; value < graph.values; ++value) {
    if (gradientOf[value].empty() || maker[value] < 0 ||
        uses[value] != gradientOf[value].size())
      continue;
    const auto call = static_cast<uint32_t>(maker[value]);
    if (const auto found = known.find(graph.calls[call]->operator_);
        found != known.end())
      operations[call].addends = found->second;
  }
}

Subgraph Executable::selectSubgraph(const std::vector<uint32_t> &given,
                                    const std::vector<uint32_t> &wanted,
                                    bool adds) const {
  std::vector<bool> isGiven(graph.values), isNeeded(graph.values);
  for (uint32_t value : given)
    isGiven[value] = true;
  for (uint32_t value : wanted)
    isNeeded[value] = true;
  Subgraph subgraph;
  subgraph.adds = adds;
  std::vector<bool> runs(graph.calls.size());
  auto need = [&](uint32_t call) {
    runs[call] = true;
    for (const Argument &argument : operations[call].arguments)
      for (int32_t value : argument.values)
        if (value >= 0)
          isNeeded[static_cast<uint32_t>(value)] = true;
  };
  for (uint32_t call = 0; adds && call < graph.calls.size(); ++call)
    if (fused[call])
      need(call);
  auto isFused = [&](uint32_t value) {
    return std::ranges::any_of(fused, [&](const auto &sum) {
      return sum && sum->parameter == gradientOf[value][0];
    });
  };
  for (uint32_t value = 0; adds && value < graph.values; ++value) {
    if (gradientOf[value].empty() || isFused(value))
      continue;
    isNeeded[value] = true;
    if (isGiven[value] || maker[value] < 0)
      subgraph.addedFirst.push_back(value);
  }
  for (auto call = static_cast<uint32_t>(graph.calls.size()); call-- > 0;) {
    const bool makes =
        std::ranges::any_of(graph.calls[call]->results, [&](int32_t result) {
          return result >= 0 && isNeeded[static_cast<uint32_t>(result)] &&
                 !isGiven[static_cast<uint32_t>(result)];
        });
    if (makes && !runs[call])
      need(call);
  }
  for (uint32_t value = 0; value < graph.values; ++value)
    if (isNeeded[value] && !isGiven[value] && maker[value] < 0)
      throw std::invalid_argument(
          "expected all inputs that the wanted results need, but value " +
          std::to_string(value) + " is missing");

  std::vector<bool> isKept(graph.values);
  for (uint32_t value : wanted)
    isKept[value] = true;
  for (uint32_t call = 0; call < graph.calls.size(); ++call) {
    if (!runs[call])
      continue;
    subgraph.calls.push_back(call);
    const std::vector<int32_t> &results = graph.calls[call]->results;
    uint32_t wantedResults = 0;
    for (size_t i = 0; i < std::min<size_t>(results.size(), 32); ++i) {
      const auto value = static_cast<uint32_t>(results[i]);
      if (results[i] >= 0 && isNeeded[value] && !isGiven[value])
        wantedResults |= 1u << i;
    }
    subgraph.wanted.push_back(wantedResults);
  }
  // This loop visits the calls from the last to the first. So the first use of
  // a value that it sees is the value's last use in the execution.
  subgraph.freedAfter.resize(subgraph.calls.size());
  std::vector<bool> isSeen(graph.values);
  for (size_t i = subgraph.calls.size(); i-- > 0;) {
    auto see = [&](int32_t number) {
      const auto value = static_cast<uint32_t>(number);
      if (number < 0 || isSeen[value])
        return;
      isSeen[value] = true;
      if (!isKept[value])
        subgraph.freedAfter[i].push_back(value);
    };
    const uint32_t call = subgraph.calls[i];
    for (int32_t value : graph.calls[call]->results)
      see(value);
    for (const Argument &argument : operations[call].arguments)
      for (int32_t value : argument.values)
        see(value);
  }
  return subgraph;
}

Tensor Executable::tensorOf(const Argument &argument,
                            const Values &values) const {
  return values[static_cast<uint32_t>(argument.values[0])];
}

void Executable::addToGradientSums(uint32_t value, const Values &values,
                                   const Context &context) const {
  for (uint32_t parameter : gradientOf[value]) {
    GradientSum &sum = *context.sums[parameter];
    const Tensor &gradient = values[value];
    if (gradient.sizes() != sum.gradient.sizes())
      throw std::invalid_argument(
          "expected a gradient of the shape of its parameter " +
          std::to_string(parameter));
    sum.add(gradient);
  }
}

void Executable::runCall(uint32_t number, const WantedResults &wanted,
                         Values &values, const CallContext &context,
                         std::vector<IValue> &stack) const {
  const program::CallT &call = *graph.calls[number];
  const Operation &operation = operations[number];
  stack.clear();
  for (const Argument &argument : operation.arguments)
    switch (argument.kind) {
    case Argument::Kind::Constant:
      stack.push_back(argument.constant);
      break;
    case Argument::Kind::Value:
      stack.emplace_back(tensorOf(argument, values));
      break;
    case Argument::Kind::Values: {
      c10::List<Tensor> list;
      for (int32_t value : argument.values)
        list.push_back(values[static_cast<uint32_t>(value)]);
      stack.emplace_back(std::move(list));
      break;
    }
    case Argument::Kind::OptionalValues: {
      c10::List<std::optional<Tensor>> list;
      for (int32_t value : argument.values)
        list.push_back(
            value < 0 ? std::nullopt
                      : std::optional(values[static_cast<uint32_t>(value)]));
      stack.emplace_back(std::move(list));
      break;
    }
    }
  for (size_t i : operation.addends)
    if (const Tensor x = stack[i].isTensor() ? stack[i].toTensor() : Tensor();
        x.defined() && x.scalar_type() == at::kBFloat16)
      stack[i] = x.to(at::kFloat);
  if (operation.check)
    operation.check(stack, context);
  if (operation.own)
    operation.own->run(stack, context, wanted);
  else
    operation.handle.callBoxed(stack);
  auto set = [&](size_t i, Tensor tensor) {
    if (call.results[i] >= 0)
      values[static_cast<uint32_t>(call.results[i])] = std::move(tensor);
  };
  if (stack.size() == 1 && stack[0].isTensorList()) {
    std::vector<Tensor> list = stack[0].toTensorVector();
    if (list.size() != call.results.size())
      throw std::invalid_argument(
          "expected " + std::to_string(call.results.size()) +
          " tensors of it, got " + std::to_string(list.size()));
    for (size_t i = 0; i < list.size(); ++i)
      set(i, std::move(list[i]));
    return;
  }
  for (size_t i = 0; i < call.results.size(); ++i)
    if (stack[i].isTensor())
      set(i, std::move(stack[i]).toTensor());
    else if (call.results[i] >= 0)
      throw std::invalid_argument("expected a tensor as its result " +
                                  std::to_string(i));
}

/// Whether the memory of `x`, which nothing uses after the sum of `x` and `y`,
/// can take this sum. `x` must own all of its memory alone. The caller of a
/// stage may own the memory: such memory cannot be resized. The sum of
/// contiguous tensors has the strides of both.
static bool canTakeSum(const Tensor &x, const Tensor &y) {
  return x.use_count() == 1 && x.storage().use_count() == 1 &&
         x.storage().resizable() && x.storage().nbytes() == x.nbytes() &&
         x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         x.is_contiguous() && y.is_contiguous();
}

bool Executable::sumInPlace(const Subgraph &subgraph, size_t position,
                            Values &values) const {
  const uint32_t call = subgraph.calls[position];
  const std::vector<uint32_t> &freed = subgraph.freedAfter[position];
  const int32_t result = graph.calls[call]->results[0];
  for (size_t i : {0, 1}) {
    const std::vector<Argument> &arguments = operations[call].arguments;
    const auto own = static_cast<uint32_t>(arguments[i].values[0]);
    const auto other = static_cast<uint32_t>(arguments[1 - i].values[0]);
    if (own == other || result < 0 ||
        std::ranges::find(freed, own) == freed.end() ||
        !canTakeSum(values[own], values[other]))
      continue;
    Tensor sum = std::move(values[own]);
    sum.add_(values[other]);
    values[static_cast<uint32_t>(result)] = std::move(sum);
    return true;
  }
  return false;
}

/// A view of `x` with these sizes, or a copy if the strides of `x` allow no
/// view.
static Tensor viewOrCopy(const Tensor &x, at::IntArrayRef sizes) {
  const at::DimVector shape = at::infer_size_dv(sizes, x.numel());
  const bool fits =
      at::detail::computeStride(x.sizes(), x.strides(), shape).has_value();
  return (fits ? x : x.contiguous()).view(shape);
}

void Executable::execute(const Subgraph &subgraph, size_t position,
                         Values &values, const Context &context,
                         std::vector<IValue> &stack) const {
  const uint32_t number = subgraph.calls[position];
  const uint32_t wanted = subgraph.wanted[position];
  const program::CallT &call = *graph.calls[number];
  const Operation &operation = operations[number];
  auto set = [&](size_t i, Tensor tensor) {
    if (call.results[i] >= 0)
      values[static_cast<uint32_t>(call.results[i])] = std::move(tensor);
  };
  auto tensor = [&](size_t i) {
    return tensorOf(operation.arguments[i], values);
  };
  GradientSum *sum = subgraph.adds && fused[number]
                         ? context.sums[fused[number]->parameter]
                         : nullptr;
  switch (operation.implementation) {
  case Implementation::Call:
    return runCall(number, {wanted, sum}, values, context.calls, stack);
  case Implementation::Product:
    if (sum) {
      GradientSum target{fused[number]->isTransposed ? sum->gradient.t()
                                                     : sum->gradient,
                         sum->hasBegun};
      target.addProduct(tensor(0), tensor(1));
      sum->hasBegun = true;
      return;
    }
    return set(0, product(tensor(0), tensor(1)));
  case Implementation::ProductWithBias:
    if (tensor(0).dim() != 1)
      return runCall(number, {}, values, context.calls, stack);
    return set(0, productWithBias(tensor(0), tensor(1), tensor(2).t()));
  case Implementation::Sum:
    if (!sumInPlace(subgraph, position, values))
      runCall(number, {}, values, context.calls, stack);
    return;
  case Implementation::View:
    return set(0, viewOrCopy(tensor(0),
                             operation.arguments[1].constant.toIntVector()));
  }
}

void Executable::run(const Subgraph &subgraph, Values &values,
                     const Context &context) const {
  std::vector<IValue> stack;
  for (uint32_t value : subgraph.addedFirst)
    addToGradientSums(value, values, context);
  for (size_t i = 0; i < subgraph.calls.size(); ++i) {
    const uint32_t number = subgraph.calls[i];
    const program::CallT &call = *graph.calls[number];
    try {
      execute(subgraph, i, values, context, stack);
      if (subgraph.adds)
        for (int32_t value : call.results)
          if (value >= 0 && values[static_cast<uint32_t>(value)].defined())
            addToGradientSums(static_cast<uint32_t>(value), values, context);
    } catch (const c10::Error &error) {
      throw std::runtime_error("call " + std::to_string(number) + ", " +
                               nameOf(call) + ": " +
                               error.what_without_backtrace());
    } catch (const std::exception &error) {
      throw std::runtime_error("call " + std::to_string(number) + ", " +
                               nameOf(call) + ": " + error.what());
    }
    for (uint32_t value : subgraph.freedAfter[i])
      values[value].reset();
  }
}
