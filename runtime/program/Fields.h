//===- Fields.h - The tensors that a model loads ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields of a sample: for example its tokens and its labels. The first
// stage loads the inputs, and the last stage loads the labels. For each field
// it loads a tensor with one row for each sample of a micro-batch. In the
// buffer the tensors are contiguous: all rows of the first field, then all rows
// of the second.
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

/// A tensor [samples, shape...]. `shape` is the shape of one sample.
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
                      kPositionIds[] = "position_ids",
                      kNextSentenceLabel[] = "next_sentence_label";

/// The inputs of the first stage and the labels of the last stage, in order.
/// For the built-in GPT-2, `input_ids` and `labels`.
std::vector<Field> inputFields(const PackageT &model);
std::vector<Field> labelFields(const PackageT &model);

/// The bytes of one sample in all fields.
int64_t sampleBytes(const std::vector<Field> &fields);

/// The index in `fields` of the field called `name`. If there is no such field
/// but only one field, the index of that field. A field of loss scales
/// (kLossScales) is ignored. None if there is no such field, or if a sample of
/// the field is not a row of int64 numbers.
std::optional<size_t> indexOfTokens(const std::vector<Field> &fields,
                                    const char *name);

/// The number of tokens in a sample. None if a sample of the model has no field
/// of tokens.
std::optional<int64_t> contextOf(const PackageT &model);

/// The number of different tokens that the model knows. It is the number of
/// rows of the embedding table of its first layer, or of the smallest one if
/// there are several. None if the first layer has no embedding of the tokens.
std::optional<int64_t> vocabularyOf(const PackageT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_FIELDS_H
