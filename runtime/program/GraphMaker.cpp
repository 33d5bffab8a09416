//===- GraphMaker.cpp - Makes graphs of a package -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/GraphMaker.h"

#include <algorithm>

namespace chimera::program {

using Value = GraphMaker::Value;
using Operand = GraphMaker::Operand;

/// Splits extents into their constants and their factors. Leaves `perSample`
/// empty if all factors are 0.
static void split(const Extents &extents, std::vector<int64_t> &constants,
                  std::vector<int64_t> &perSample) {
  for (const Extent &extent : extents)
    constants.push_back(extent.constant);
  if (std::ranges::any_of(
          extents, [](const Extent &extent) { return extent.perSample != 0; }))
    for (const Extent &extent : extents)
      perSample.push_back(extent.perSample);
}

std::unique_ptr<TensorShapeT> makeTensorShape(TensorType type,
                                              const Extents &extents) {
  auto shape = std::make_unique<TensorShapeT>();
  shape->type = type;
  split(extents, shape->shape, shape->per_sample);
  return shape;
}

Operand::Operand(Value value) {
  made.kind = ArgumentKind::Value;
  made.values = {static_cast<int32_t>(value.number)};
}

Operand::Operand(bool boolean) {
  made.kind = ArgumentKind::Boolean;
  made.integers = {boolean};
}

Operand Operand::ofInteger(int64_t integer) {
  Operand operand(std::nullopt);
  operand.made.kind = ArgumentKind::Integer;
  operand.made.integers = {integer};
  return operand;
}

Operand::Operand(const Extents &integers) {
  made.kind = ArgumentKind::Integers;
  split(integers, made.integers, made.per_sample);
}

Operand::Operand(double number) {
  made.kind = ArgumentKind::Number;
  made.numbers = {number};
}

Operand::Operand(TensorType type) {
  made.kind = ArgumentKind::Type;
  made.type = type;
}

Operand::Operand(const char *text) {
  made.kind = ArgumentKind::Text;
  made.text = text;
}

Operand Operand::values(const std::vector<Value> &list) {
  Operand operand(std::nullopt);
  operand.made.kind = ArgumentKind::Values;
  for (Value value : list)
    operand.made.values.push_back(static_cast<int32_t>(value.number));
  return operand;
}

Operand Operand::booleans(const std::vector<bool> &list) {
  Operand operand(std::nullopt);
  operand.made.kind = ArgumentKind::Booleans;
  operand.made.integers.assign(list.begin(), list.end());
  return operand;
}

Value GraphMaker::input(Role role, uint32_t index) {
  auto known = std::ranges::find_if(graph.inputs, [&](const Port &port) {
    return port.role() == role && port.index() == index;
  });
  if (known != graph.inputs.end())
    return {known->value()};
  const Value value = makeValue();
  graph.inputs.emplace_back(value.number, index, role);
  return value;
}

Value GraphMaker::call(std::string_view name,
                       const std::vector<Operand> &operands) {
  return calls<1>(name, operands)[0];
}

void GraphMaker::output(Role role, uint32_t index, Value value) {
  graph.outputs.emplace_back(value.number, index, role);
}

void GraphMaker::add(std::string_view name,
                     const std::vector<Operand> &operands, const Value *results,
                     size_t count) {
  auto call = std::make_unique<CallT>();
  const size_t dot = name.find('.');
  call->operator_ = name.substr(0, dot);
  if (dot != name.npos)
    call->overload = name.substr(dot + 1);
  for (const Operand &operand : operands)
    call->arguments.push_back(std::make_unique<ArgumentT>(operand.argument()));
  for (size_t i = 0; i < count; ++i)
    call->results.push_back(static_cast<int32_t>(results[i].number));
  graph.calls.push_back(std::move(call));
}

std::unique_ptr<GraphT> GraphMaker::finish() {
  return std::make_unique<GraphT>(std::move(graph));
}

} // namespace chimera::program
