//===- Operators.cpp - Operators that packages may call -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Operators.h"

#include "runtime/model/graph/OperatorList.h"
#include "runtime/program/Printable.h"

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

/// The constant for an argument of type `type`. Throws std::invalid_argument if
/// the argument does not fit; the exception's text says only what was expected.
static IValue constantOf(const ArgumentT &argument, const c10::Type &type) {
  using c10::TypeKind;
  const ArgumentKind kind = argument.kind;
  // A package may store an empty list of another type as an empty list of
  // integers. So accept an empty list of integers for every element type.
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
    // With a wrapped number, the other tensors of the call determine the type
    // of the result, as in PyTorch.
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
    // Only None is accepted: a package does not choose device, layout or memory
    // format.
    if (kind == ArgumentKind::None)
      return IValue();
    throw std::invalid_argument(type.str());
  }
}

static bool isListOfOptional(const c10::Type &type) {
  const auto *list = type.castRaw<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

std::string chimera::runtime::nameOf(const program::CallT &call) {
  return program::printable(call.operator_ +
                            (call.overload.empty() ? "" : "." + call.overload));
}

c10::OperatorHandle chimera::runtime::findOperator(const program::CallT &call) {
  if (!allowedOperators().contains(call.operator_))
    throw std::invalid_argument("expected an operator that packages may "
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
  return *handle;
}

std::vector<OperatorArgument>
chimera::runtime::argumentsOf(const program::CallT &call,
                              const c10::FunctionSchema &schema,
                              uint32_t samples, at::Device device) {
  using Kind = OperatorArgument::Kind;
  std::vector<OperatorArgument> arguments;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    ArgumentT given = *call.arguments[i];
    given.integers =
        program::valuesFor(given.integers, given.per_sample, samples);
    const c10::Argument &wanted = schema.arguments()[i];
    const c10::Type *type = wanted.type().get();
    if (const auto *optional = type->castRaw<c10::OptionalType>())
      type = optional->getElementType().get();
    OperatorArgument argument;
    if (given.kind == ArgumentKind::Value) {
      if (type->kind() != c10::TypeKind::TensorType)
        throw std::invalid_argument("expected " + type->str() + " as '" +
                                    wanted.name() + "' of '" + nameOf(call) +
                                    "', got a tensor");
      argument.kind = Kind::Value;
      argument.values = given.values;
    } else if (given.kind == ArgumentKind::Values) {
      const bool isOptional = isListOfOptional(*type);
      if (type->kind() != c10::TypeKind::ListType ||
          (!isOptional &&
           std::ranges::find(given.values, -1) != given.values.end()))
        throw std::invalid_argument("expected " + type->str() + " as '" +
                                    wanted.name() + "' of '" + nameOf(call) +
                                    "', got a list of tensors");
      argument.kind = isOptional ? Kind::OptionalValues : Kind::Values;
      argument.values = given.values;
    } else if (type->kind() == c10::TypeKind::DeviceObjType) {
      argument.constant = device;
    } else {
      try {
        argument.constant = constantOf(given, *wanted.type());
      } catch (const std::invalid_argument &expected) {
        throw std::invalid_argument(
            std::string("expected ") + expected.what() + " as '" +
            wanted.name() + "' of '" + nameOf(call) +
            "', got an argument of kind " + EnumNameArgumentKind(given.kind));
      }
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}
