//===- Executable.cpp - A graph that can be run ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/exported/Executable.h"

#include "runtime/program/Printable.h"
#include "runtime/stage/exported/Operators.h"
#include "runtime/stage/torch/Products.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;
using c10::IValue;
using program::ArgumentKind;
using program::ArgumentT;

static const std::set<std::string> &allowedOperators() {
  static const std::set<std::string> names = [] {
    std::set<std::string> result;
    std::istringstream text(kOperatorsText);
    for (std::string line; std::getline(text, line);)
      if (!line.empty() && line[0] != '#')
        result.insert(line);
    return result;
  }();
  return names;
}

at::ScalarType chimera::runtime::torchTypeOf(program::TensorType type) {
  switch (type) {
  case program::TensorType::Boolean:
    return at::kBool;
  case program::TensorType::UInt8:
    return at::kByte;
  case program::TensorType::Int8:
    return at::kChar;
  case program::TensorType::Int16:
    return at::kShort;
  case program::TensorType::Int32:
    return at::kInt;
  case program::TensorType::Int64:
    return at::kLong;
  case program::TensorType::Float16:
    return at::kHalf;
  case program::TensorType::BFloat16:
    return at::kBFloat16;
  case program::TensorType::Float32:
    return at::kFloat;
  case program::TensorType::Float64:
    return at::kDouble;
  }
  throw std::invalid_argument("expected a known type of tensors");
}

static c10::Scalar scalarOf(const ArgumentT &argument) {
  switch (argument.kind) {
  case ArgumentKind::Boolean:
    return c10::Scalar(argument.integers[0] != 0);
  case ArgumentKind::Integer:
    return c10::Scalar(argument.integers[0]);
  case ArgumentKind::Number:
    return c10::Scalar(argument.numbers[0]);
  default:
    throw std::invalid_argument("a number");
  }
}

/// The constant that an argument of type `type` is. Throws
/// std::invalid_argument with what was expected.
static IValue constantOf(const ArgumentT &argument, const c10::Type &type) {
  using c10::TypeKind;
  const ArgumentKind kind = argument.kind;
  // An empty list does not say of what.
  const bool isEmpty =
      kind == ArgumentKind::Integers && argument.integers.empty();
  switch (type.kind()) {
  case TypeKind::OptionalType:
    return kind == ArgumentKind::None
               ? IValue()
               : constantOf(
                     argument,
                     *type.castRaw<c10::OptionalType>()->getElementType());
  case TypeKind::IntType:
  case TypeKind::SymIntType:
    if (kind == ArgumentKind::Type)
      return static_cast<int64_t>(torchTypeOf(argument.type));
    if (kind == ArgumentKind::Integer)
      return argument.integers[0];
    throw std::invalid_argument("an integer");
  case TypeKind::FloatType:
    if (kind == ArgumentKind::Number)
      return argument.numbers[0];
    if (kind == ArgumentKind::Integer)
      return static_cast<double>(argument.integers[0]);
    throw std::invalid_argument("a number");
  case TypeKind::BoolType:
    if (kind == ArgumentKind::Boolean)
      return argument.integers[0] != 0;
    throw std::invalid_argument("true or false");
  case TypeKind::NumberType:
    return scalarOf(argument);
  case TypeKind::StringType:
    if (kind == ArgumentKind::Text)
      return argument.text;
    throw std::invalid_argument("a text");
  case TypeKind::TensorType: {
    if (kind == ArgumentKind::None)
      return Tensor();
    // Takes its type from the tensors beside it.
    Tensor number = c10::scalar_to_tensor(scalarOf(argument));
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  case TypeKind::ListType: {
    const c10::Type &element = *type.castRaw<c10::ListType>()->getElementType();
    switch (element.kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      if (kind == ArgumentKind::Integers)
        return c10::List<int64_t>(at::IntArrayRef(argument.integers));
      break;
    case TypeKind::FloatType:
      if (kind == ArgumentKind::Numbers || isEmpty)
        return c10::List<double>(at::ArrayRef<double>(argument.numbers));
      break;
    case TypeKind::BoolType:
      if (kind == ArgumentKind::Booleans || isEmpty) {
        c10::List<bool> list;
        for (int64_t integer : argument.integers)
          list.push_back(integer != 0);
        return list;
      }
      break;
    default:
      break;
    }
    throw std::invalid_argument("a list of " + element.str());
  }
  default:
    // Of where a graph runs, and how tensors lie, it says nothing.
    if (kind == ArgumentKind::None)
      return IValue();
    throw std::invalid_argument(type.str());
  }
}

static bool isListOfOptional(const c10::Type &type) {
  const auto *list = type.castRaw<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

static std::string nameOf(const program::CallT &call) {
  return program::printable(call.operator_ +
                            (call.overload.empty() ? "" : "." + call.overload));
}

Executable::Executable(const program::GraphT &graph, at::Device device)
    : graph(graph), device(device), maker(graph.values, -1), uses(graph.values),
      gradientOf(graph.values), fused(graph.calls.size()) {
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
}

Executable::Operation Executable::find(const program::CallT &call,
                                       uint32_t &sites) const {
  if (!allowedOperators().contains(call.operator_))
    throw std::invalid_argument("expected an operator that exported models may "
                                "call, got '" +
                                nameOf(call) + "'");
  auto handle =
      c10::Dispatcher::singleton().findSchema({call.operator_, call.overload});
  if (!handle)
    throw std::invalid_argument("expected an operator of this LibTorch, got '" +
                                nameOf(call) +
                                "': export with the same version of PyTorch");
  const c10::FunctionSchema &schema = handle->schema();
  if (schema.is_mutable())
    throw std::invalid_argument("expected an operator that changes none of its "
                                "arguments, got '" +
                                nameOf(call) + "'");
  if (schema.arguments().size() != call.arguments.size())
    throw std::invalid_argument("expected " +
                                std::to_string(schema.arguments().size()) +
                                " arguments of '" + nameOf(call) + "', got " +
                                std::to_string(call.arguments.size()));
  const auto &returns = schema.returns();
  const bool isList = returns.size() == 1 &&
                      returns[0].type()->kind() == c10::TypeKind::ListType;
  if (!isList && returns.size() != call.results.size())
    throw std::invalid_argument("expected " + std::to_string(returns.size()) +
                                " results of '" + nameOf(call) + "', got " +
                                std::to_string(call.results.size()));
  Operation operation{*handle};
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const ArgumentT &given = *call.arguments[i];
    const c10::Argument &wanted = schema.arguments()[i];
    const c10::Type *type = wanted.type().get();
    if (const auto *optional = type->castRaw<c10::OptionalType>())
      type = optional->getElementType().get();
    Argument argument;
    if (given.kind == ArgumentKind::Value) {
      if (type->kind() != c10::TypeKind::TensorType)
        throw std::invalid_argument("expected " + type->str() + " as '" +
                                    wanted.name() + "' of '" + nameOf(call) +
                                    "', got a tensor");
      argument.kind = Argument::Kind::Value;
      argument.values = given.values;
    } else if (given.kind == ArgumentKind::Values) {
      const bool isOptional = isListOfOptional(*type);
      if (type->kind() != c10::TypeKind::ListType ||
          (!isOptional &&
           std::ranges::find(given.values, -1) != given.values.end()))
        throw std::invalid_argument("expected " + type->str() + " as '" +
                                    wanted.name() + "' of '" + nameOf(call) +
                                    "', got a list of tensors");
      argument.kind =
          isOptional ? Argument::Kind::OptionalValues : Argument::Kind::Values;
      argument.values = given.values;
    } else if (type->kind() == c10::TypeKind::DeviceObjType) {
      argument.constant = device;
    } else {
      try {
        argument.constant = constantOf(given, *wanted.type());
      } catch (const std::invalid_argument &expected) {
        throw std::invalid_argument(std::string("expected ") + expected.what() +
                                    " as '" + wanted.name() + "' of '" +
                                    nameOf(call) + "', got something else");
      }
    }
    operation.arguments.push_back(std::move(argument));
  }
  auto isValue = [&](size_t i) {
    return operation.arguments[i].kind == Argument::Kind::Value;
  };
  // It counts without looking at what it counts.
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
  if (call.operator_ == "aten::native_dropout") {
    const IValue &dropped = operation.arguments[1].constant;
    const IValue &acts = operation.arguments[2].constant;
    // The comparison is false for NaN.
    if (!isValue(0) || !dropped.isDouble() ||
        !(dropped.toDouble() > 0 && dropped.toDouble() < 1) ||
        !acts.isBool() || !acts.toBool())
      throw std::invalid_argument("expected a tensor, a probability in (0, 1) "
                                  "and true for 'aten::native_dropout'");
    operation.way = Way::Dropout;
    operation.site = sites++;
  } else if (call.operator_ == "aten::mm" && call.overload.empty() &&
             isValue(0) && isValue(1)) {
    operation.way = Way::Product;
  } else if (call.operator_ == "aten::addmm" && call.overload.empty() &&
             isValue(0) && isValue(1) && isValue(2) && isOne(3) && isOne(4)) {
    operation.way = Way::ProductWithBias;
  }
  return operation;
}

bool Executable::isTranspose(uint32_t call) const {
  return graph.calls[call]->operator_ == "aten::t" &&
         operations[call].arguments[0].kind == Argument::Kind::Value;
}

/// Finds products whose result is one parameter's gradient, as it is or
/// transposed, and nothing else.
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
    if (uses[value] == 1 && maker[value] >= 0 &&
        operations[static_cast<uint32_t>(maker[value])].way == Way::Product)
      fused[static_cast<uint32_t>(maker[value])] =
          FusedSum{gradientOf[output][0], isTransposed};
  }
}

Selection Executable::select(const std::vector<uint32_t> &given,
                             const std::vector<uint32_t> &wanted,
                             bool adds) const {
  std::vector<bool> isGiven(graph.values), isNeeded(graph.values);
  for (uint32_t value : given)
    isGiven[value] = true;
  for (uint32_t value : wanted)
    isNeeded[value] = true;
  Selection selection;
  selection.adds = adds;
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
      selection.addedFirst.push_back(value);
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
          "expected every input that its results need, value " +
          std::to_string(value) + " is missing");

  std::vector<bool> isKept(graph.values);
  for (uint32_t value : wanted)
    isKept[value] = true;
  for (uint32_t call = 0; call < graph.calls.size(); ++call)
    if (runs[call])
      selection.calls.push_back(call);
  // From the last call on, the first use that is seen is the last one.
  selection.dead.resize(selection.calls.size());
  std::vector<bool> isSeen(graph.values);
  for (size_t i = selection.calls.size(); i-- > 0;) {
    auto see = [&](int32_t number) {
      const auto value = static_cast<uint32_t>(number);
      if (number < 0 || isSeen[value])
        return;
      isSeen[value] = true;
      if (!isKept[value])
        selection.dead[i].push_back(value);
    };
    const uint32_t call = selection.calls[i];
    for (int32_t value : graph.calls[call]->results)
      see(value);
    for (const Argument &argument : operations[call].arguments)
      for (int32_t value : argument.values)
        see(value);
  }
  return selection;
}

Tensor Executable::tensorOf(const Argument &argument,
                            const Values &values) const {
  return values[static_cast<uint32_t>(argument.values[0])];
}

void Executable::addSums(uint32_t value, const Values &values,
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

void Executable::callOperator(uint32_t number, Values &values,
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

void Executable::execute(uint32_t number, bool adds, Values &values,
                         const Context &context,
                         std::vector<IValue> &stack) const {
  const program::CallT &call = *graph.calls[number];
  const Operation &operation = operations[number];
  auto set = [&](size_t i, Tensor tensor) {
    if (call.results[i] >= 0)
      values[static_cast<uint32_t>(call.results[i])] = std::move(tensor);
  };
  auto tensor = [&](size_t i) {
    return tensorOf(operation.arguments[i], values);
  };
  switch (operation.way) {
  case Way::Operator:
    return callOperator(number, values, stack);
  case Way::Product:
    if (adds && fused[number]) {
      GradientSum &sum = *context.sums[fused[number]->parameter];
      GradientSum target{fused[number]->isTransposed ? sum.gradient.t()
                                                     : sum.gradient,
                         sum.hasBegun};
      target.addProduct(tensor(0), tensor(1));
      sum.hasBegun = true;
      return;
    }
    return set(0, product(tensor(0), tensor(1)));
  case Way::ProductWithBias:
    if (tensor(0).dim() != 1)
      return callOperator(number, values, stack);
    return set(0, productWithBias(tensor(0), tensor(1), tensor(2).t()));
  case Way::Dropout:
    break;
  }
  const Tensor x = tensor(0);
  const Dropout dropout(operation.arguments[1].constant.toDouble(),
                        context.seed, context.layer, context.dropped,
                        context.kernels);
  if (!dropout.acts())
    return set(0, x);
  const auto site = static_cast<DropoutSite>(operation.site);
  Tensor kept = dropout.kept(site, x.numel(), 0, x.sizes(), x.device());
  set(0, x.mul(kept).mul_(dropout.scale()));
  set(1, std::move(kept));
}

void Executable::run(const Selection &selection, Values &values,
                     const Context &context) const {
  std::vector<IValue> stack;
  for (uint32_t value : selection.addedFirst)
    addSums(value, values, context);
  for (size_t i = 0; i < selection.calls.size(); ++i) {
    const uint32_t number = selection.calls[i];
    const program::CallT &call = *graph.calls[number];
    try {
      execute(number, selection.adds, values, context, stack);
      if (selection.adds)
        for (int32_t value : call.results)
          if (value >= 0 && values[static_cast<uint32_t>(value)].defined())
            addSums(static_cast<uint32_t>(value), values, context);
    } catch (const c10::Error &error) {
      throw std::runtime_error("call " + std::to_string(number) + ", " +
                               nameOf(call) + ": " +
                               error.what_without_backtrace());
    } catch (const std::exception &error) {
      throw std::runtime_error("call " + std::to_string(number) + ", " +
                               nameOf(call) + ": " + error.what());
    }
    for (uint32_t value : selection.dead[i])
      values[value].reset();
  }
}
