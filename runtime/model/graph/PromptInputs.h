//===- PromptInputs.h - A model's inputs for a prompt -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_PROMPTINPUTS_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_PROMPTINPUTS_H

#include "runtime/program/Fields.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace chimera::runtime {

/// The inputs of a language model for the tokens of a prompt: the tokens and,
/// if the model has them, attention_mask and position_ids.
class PromptInputs {
public:
  /// Throws std::invalid_argument if the model has other inputs.
  explicit PromptInputs(const program::PackageT &model);

  /// The number of tokens in a sample.
  uint64_t context() const { return static_cast<uint64_t>(tokensOfSample); }
  /// The tensors of one sample, in the order of the model's inputs. The sample
  /// begins with `tokens`; all other tokens are 0. Requires at most context()
  /// tokens.
  std::vector<at::Tensor> tensorsFor(std::span<const int64_t> tokens) const;

private:
  std::vector<program::Field> fields;
  int64_t tokensOfSample;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_PROMPTINPUTS_H
