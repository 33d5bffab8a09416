//===- Fields.h - What data gives a model -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors that the first stage and the last one load, each with a row for
// each sample of a micro-batch. In a buffer they lie one behind another: all
// rows of the first, then all of the second.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_FIELDS_H
#define CHIMERA_RUNTIME_PROGRAM_FIELDS_H

#include "runtime/program/program_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chimera::program {

/// A tensor of which each sample has `shape`.
struct Field {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;

  int64_t elements() const;
  int64_t bytes() const; ///< of a sample
};

/// The names of a language model's fields, as Hugging Face's models have them.
inline constexpr char kInputIds[] = "input_ids", kLabels[] = "labels",
                      kTokenTypeIds[] = "token_type_ids",
                      kAttentionMask[] = "attention_mask",
                      kNextSentenceLabel[] = "next_sentence_label";

/// Those of the model, in order. Of "gpt2": input_ids, and labels.
std::vector<Field> inputFields(const ModelT &model);
std::vector<Field> labelFields(const ModelT &model);

/// Bytes of a sample in all of them.
int64_t sampleBytes(const std::vector<Field> &fields);

/// The number in `fields` of the one that has a sample's tokens or the labels
/// of them: the one of that name or, where there is one field alone, that one.
/// None where it has not one row of int64 numbers.
std::optional<size_t> tokensAmong(const std::vector<Field> &fields,
                                  const char *name);

/// Tokens in a sample, where a sample of the model is that many tokens; none of
/// another model.
std::optional<int64_t> contextOf(const ModelT &model);

/// How many tokens the model knows: of a package the rows of the table in which
/// its first layer looks them up; none where it does not say.
std::optional<int64_t> vocabularyOf(const ModelT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FIELDS_H
