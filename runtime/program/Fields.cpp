//===- Fields.cpp - The tensors that a model loads ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Fields.h"

#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"

#include <algorithm>

namespace chimera::program {

int64_t Field::elements() const { return elementsOf(shape); }
int64_t Field::bytes() const { return elements() * bytesOf(type); }

static std::vector<Field>
fieldsOf(const std::vector<std::string> &names,
         const std::vector<std::unique_ptr<TensorShapeT>> &tensors) {
  std::vector<Field> fields;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<int64_t> &shape = tensors[i]->shape;
    fields.push_back(
        {names[i], tensors[i]->type, {shape.begin() + 1, shape.end()}});
  }
  return fields;
}

std::vector<Field> inputFields(const PackageT &model) {
  return fieldsOf(model.inputs, graphsOf(model, 0).inputs);
}

std::vector<Field> labelFields(const PackageT &model) {
  return fieldsOf(model.labels, graphsOf(model, layerCount(model) - 1).labels);
}

int64_t sampleBytes(const std::vector<Field> &fields) {
  int64_t bytes = 0;
  for (const Field &field : fields)
    bytes += field.bytes();
  return bytes;
}

std::optional<size_t> indexOfTokens(const std::vector<Field> &fields,
                                    const char *name) {
  auto found = std::ranges::find(fields, name, &Field::name);
  // If the loss has several terms, the last field has their factors and no data
  // of a sample. So it is not counted.
  const bool scales = !fields.empty() && fields.back().name == kLossScales;
  if (found == fields.end() && fields.size() == (scales ? 2 : 1))
    found = fields.begin();
  if (found == fields.end() || found->type != TensorType::Int64 ||
      found->shape.size() != 1)
    return std::nullopt;
  return static_cast<size_t>(found - fields.begin());
}

std::optional<int64_t> contextOf(const PackageT &model) {
  const std::vector<Field> fields = inputFields(model);
  const std::optional<size_t> tokens = indexOfTokens(fields, kInputIds);
  return tokens ? std::optional(fields[*tokens].shape[0]) : std::nullopt;
}

std::optional<int64_t> vocabularyOf(const PackageT &model) {
  const std::optional<size_t> tokens =
      indexOfTokens(inputFields(model), kInputIds);
  const LayerKindT &first = kindOf(model, 0);
  const GraphT &graph = *first.graphs->forward;
  const auto portOf = [&](const ArgumentT &argument) {
    return std::ranges::find_if(graph.inputs, [&](const Port &port) {
      return argument.kind == ArgumentKind::Value &&
             port.value() == static_cast<uint32_t>(argument.values[0]);
    });
  };
  std::optional<int64_t> rows;
  for (const auto &call : graph.calls) {
    if (!tokens || call->operator_ != "aten::embedding" ||
        call->arguments.size() < 2)
      continue;
    const auto table = portOf(*call->arguments[0]),
               indices = portOf(*call->arguments[1]);
    if (table == graph.inputs.end() || indices == graph.inputs.end() ||
        table->role() != Role::Parameter || indices->role() != Role::Input ||
        indices->index() != *tokens)
      continue;
    const std::vector<int64_t> &shape = first.parameters[table->index()]->shape;
    if (!shape.empty())
      rows = std::min(rows.value_or(shape[0]), shape[0]);
  }
  return rows;
}

} // namespace chimera::program
