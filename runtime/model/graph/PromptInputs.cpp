//===- PromptInputs.cpp - A model's inputs for a prompt -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/PromptInputs.h"

#include "runtime/model/graph/Operators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

PromptInputs::PromptInputs(const program::PackageT &model)
    : fields(program::inputFields(model)),
      tokensOfSample(program::contextOf(model).value_or(0)) {
  if (const auto ofTokens = program::indexOfTokens(fields, program::kInputIds))
    fields[*ofTokens].name = program::kInputIds;
  const auto isKnown = [&](const program::Field &field) {
    return field.shape == std::vector<int64_t>{tokensOfSample} &&
           (field.name == program::kInputIds ||
            field.name == program::kAttentionMask ||
            field.name == program::kPositionIds);
  };
  if (const auto other = std::ranges::find_if_not(fields, isKnown);
      other != fields.end())
    throw std::invalid_argument(
        "expected a model whose inputs are among input_ids, attention_mask and "
        "position_ids, with one number per token, to continue a text, got one "
        "with '" +
        other->name + "'");
}

std::vector<Tensor>
PromptInputs::tensorsFor(std::span<const int64_t> tokens) const {
  const std::array<int64_t, 2> shape = {1, tokensOfSample};
  std::vector<Tensor> values;
  for (const program::Field &field : fields) {
    Tensor value = at::zeros(shape, at::kLong);
    if (field.name == program::kPositionIds)
      value.add_(at::arange(tokensOfSample, at::kLong));
    else if (field.name == program::kAttentionMask)
      value.fill_(1);
    else
      std::ranges::copy(tokens, value.mutable_data_ptr<int64_t>());
    values.push_back(value.to(torchTypeOf(field.type)));
  }
  return values;
}
