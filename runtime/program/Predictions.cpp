//===- Predictions.cpp - The labels that a model predicts -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Predictions.h"

#include "runtime/program/Fields.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Package.h"

#include <algorithm>
#include <cstring>

using namespace chimera;

std::optional<size_t> program::predictedField(const PackageT &model) {
  if (!graphsOf(model, layerCount(model) - 1).logits)
    return std::nullopt;
  const std::vector<Field> fields = labelFields(model);
  const auto isWhole = [](const Field &field) {
    return field.type == TensorType::Int64;
  };
  if (std::ranges::count_if(fields, isWhole) != 1)
    return std::nullopt;
  return static_cast<size_t>(std::ranges::find_if(fields, isWhole) -
                             fields.begin());
}

std::optional<int64_t> program::ignoredLabel(const PackageT &model) {
  constexpr size_t kIgnored = 4; // the argument's position in these calls
  for (const auto &call :
       graphsOf(model, layerCount(model) - 1).forward->calls) {
    if (!call->operator_.starts_with("aten::nll_loss") &&
        call->operator_ != "chimera::linear_cross_entropy")
      continue;
    if (call->arguments.size() > kIgnored &&
        call->arguments[kIgnored]->kind == ArgumentKind::Integer)
      return call->arguments[kIgnored]->integers[0];
  }
  return std::nullopt;
}

uint64_t program::countLabels(const PackageT &model, uint32_t samples,
                              std::span<const std::byte> labels) {
  const std::vector<Field> fields = labelFields(model);
  const size_t predicted = predictedField(model).value();
  int64_t before = 0; // bytes of one sample
  for (size_t i = 0; i < predicted; ++i)
    before += fields[i].bytes();
  // The labels have all samples of the first field, then all of the second one.
  const std::byte *next =
      labels.subspan(static_cast<size_t>(before) * samples).data();
  const std::optional<int64_t> ignored = ignoredLabel(model);
  uint64_t count = 0;
  for (uint64_t i = 0;
       i < static_cast<uint64_t>(fields[predicted].elements()) * samples; ++i) {
    int64_t label = 0;
    std::memcpy(&label, next, sizeof label);
    next += sizeof label;
    count += label >= 0 && label != ignored;
  }
  return count;
}
