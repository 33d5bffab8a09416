//===- Fields.h - The tensors that a model loads ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors that the first and the last stage load. Each has one row for each
// sample of a micro-batch. In a buffer they are contiguous: all rows of the
// first tensor, then all rows of the second.
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

/// A tensor in which each sample has `shape`.
struct Field {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;

  int64_t elements() const;
  int64_t bytes() const; ///< of one sample
};

/// The names of a language model's fields, as in Hugging Face's models.
inline constexpr char kInputIds[] = "input_ids", kLabels[] = "labels",
                      kTokenTypeIds[] = "token_type_ids",
                      kAttentionMask[] = "attention_mask",
                      kNextSentenceLabel[] = "next_sentence_label";

/// The fields of the model, in order. For "gpt2": input_ids, and labels.
std::vector<Field> inputFields(const ModelT &model);
std::vector<Field> labelFields(const ModelT &model);

/// Bytes of one sample in all fields together.
int64_t sampleBytes(const std::vector<Field> &fields);

/// The index in `fields` of the field with a sample's tokens, or with their
/// labels: the field called `name`, or the only field. None if there is no such
/// field, or if its samples are not one row of int64 numbers.
std::optional<size_t> indexOfTokens(const std::vector<Field> &fields,
                                    const char *name);

/// The number of tokens in a sample; none if a sample of the model is not a row
/// of tokens.
std::optional<int64_t> contextOf(const ModelT &model);

/// The number of different tokens that the model knows. For a package, this is
/// the number of rows of the table in which its first layer looks tokens up.
/// None if the first layer has no such table.
std::optional<int64_t> vocabularyOf(const ModelT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FIELDS_H
