//===- CheckGraph.cpp - Checks of a package's graphs ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CheckGraph.h"
#include "runtime/program/Printable.h"

#include <algorithm>
#include <set>
#include <utility>

namespace chimera::program {

static constexpr size_t kMaxName = 1 << 10;

void checkPrintable(FirstError &error, const char *what,
                    const std::string &text) {
  if (text.size() > kMaxName || !isPrintable(text))
    error.fail(std::string("expected a ") + what + " of at most " +
               std::to_string(kMaxName) + " printable characters, got '" +
               printable(text.substr(0, 64)) + "'");
}

void checkTensorType(FirstError &error, TensorType type) {
  if (type > TensorType::MAX)
    error.fail("expected a known type of tensors, got " +
               std::to_string(static_cast<unsigned>(type)));
}

bool checkPerSample(FirstError &error, const std::vector<int64_t> &constants,
                    const std::vector<int64_t> &perSample) {
  if (!perSample.empty() && perSample.size() != constants.size()) {
    error.fail("expected a number per sample for each of " +
               std::to_string(constants.size()) + " integers, got " +
               std::to_string(perSample.size()));
    return false;
  }
  for (size_t i = 0; i < perSample.size(); ++i) {
    int64_t most = 0;
    if (__builtin_mul_overflow(perSample[i], kMaxSamples, &most) ||
        __builtin_add_overflow(constants[i], most, &most)) {
      error.fail("expected integers below 2^63 for 2^20 samples");
      return false;
    }
  }
  return true;
}

static void checkPorts(FirstError &error, const std::vector<Port> &ports,
                       std::span<const Role> roles,
                       const std::function<size_t(Role)> &count) {
  std::set<std::pair<Role, uint32_t>> known;
  for (const Port &port : ports) {
    if (std::ranges::find(roles, port.role()) == roles.end())
      return error.fail(std::string("unexpected port of the role ") +
                        nameOf(port.role()));
    if (port.index() >= count(port.role()))
      return error.fail(std::string("expected a ") + nameOf(port.role()) +
                        " below " + std::to_string(count(port.role())) +
                        ", got " + std::to_string(port.index()));
    if (!known.insert({port.role(), port.index()}).second)
      return error.fail(std::string("expected one port for ") +
                        nameOf(port.role()) + " " +
                        std::to_string(port.index()) + ", got two");
  }
}

static void checkArgument(FirstError &error, const ArgumentT &argument) {
  auto expect = [&](bool isGood) {
    if (!isGood)
      error.fail(
          "expected an argument with the fields of its kind and no others");
  };
  using enum ArgumentKind;
  auto isOneOf = [&](auto... kinds) {
    return ((argument.kind == kinds) || ...);
  };
  expect(isOneOf(Value, Values) || argument.values.empty());
  expect(isOneOf(Boolean, Booleans, Integer, Integers) ||
         argument.integers.empty());
  expect(isOneOf(Integer, Integers) || argument.per_sample.empty());
  expect(isOneOf(Number, Numbers) || argument.numbers.empty());
  expect(isOneOf(Text) || argument.text.empty());
  checkPerSample(error, argument.integers, argument.per_sample);
  switch (argument.kind) {
  case ArgumentKind::None:
  case ArgumentKind::Values:
  case ArgumentKind::Booleans:
  case ArgumentKind::Integers:
  case ArgumentKind::Numbers:
    break;
  case ArgumentKind::Value:
    return expect(argument.values.size() == 1);
  case ArgumentKind::Boolean:
  case ArgumentKind::Integer:
    return expect(argument.integers.size() == 1);
  case ArgumentKind::Number:
    return expect(argument.numbers.size() == 1);
  case ArgumentKind::Type:
    return checkTensorType(error, argument.type);
  case ArgumentKind::Text:
    return checkPrintable(error, "text argument", argument.text);
  default:
    return expect(false);
  }
}

void checkGraph(FirstError &error, const GraphT &graph,
                std::span<const Role> takes, std::span<const Role> makes,
                const std::function<size_t(Role)> &count) {
  if (error)
    return;
  if (graph.values > kMaxValues)
    return error.fail("expected at most 2^20 values, got " +
                      std::to_string(graph.values));
  checkPorts(error, graph.inputs, takes, count);
  checkPorts(error, graph.outputs, makes, count);
  std::vector<bool> isDefined(graph.values);
  auto define = [&](uint64_t value) {
    if (value >= graph.values)
      return error.fail("expected a value below " +
                        std::to_string(graph.values) + ", got " +
                        std::to_string(value));
    if (isDefined[value])
      return error.fail("value " + std::to_string(value) + " is defined twice");
    isDefined[value] = true;
  };
  auto use = [&](uint64_t value) {
    if (value >= graph.values || !isDefined[value])
      error.fail("value " + std::to_string(value) +
                 " is used before it is defined");
  };
  for (const Port &port : graph.inputs)
    define(port.value());
  for (size_t i = 0; i < graph.calls.size() && !error; ++i) {
    const CallT &call = *graph.calls[i];
    checkPrintable(error, "operator", call.operator_);
    checkPrintable(error, "overload", call.overload);
    for (const auto &argument : call.arguments) {
      checkArgument(error, *argument);
      for (int32_t value : argument->values)
        if (value != -1 || argument->kind != ArgumentKind::Values)
          use(static_cast<uint32_t>(value));
    }
    for (int32_t value : call.results)
      if (value != -1)
        define(static_cast<uint32_t>(value));
  }
  for (const Port &port : graph.outputs)
    use(port.value());
}

} // namespace chimera::program
