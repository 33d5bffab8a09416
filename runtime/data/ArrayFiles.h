//===- ArrayFiles.h - The fields of samples as arrays in files --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Samples as arrays. Each field of a sample, such as an image or its class, is
// an array [samples, shape...]. An array is in one file or in several (shards),
// which are in the order in which they are given:
// - a safetensors file has a tensor for each field, named like the field; its
//   metadata may say which field a model must have (kNeededField),
// - a .npz file of NumPy (not compressed) has an array for each field,
// - a .npy file of NumPy has one array, so the user gives the field's name.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_ARRAYFILES_H
#define CHIMERA_RUNTIME_DATA_ARRAYFILES_H

#include "runtime/data/InputFile.h"
#include "runtime/program/Fields.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A file with arrays, as the user names it: FIELD=FILE.npy, FILE.npz or
/// FILE.safetensors.
struct ArrayFileName {
  std::string field; ///< empty if the user named none
  std::string path;
};

/// The key of a safetensors file's metadata that names a field. A model without
/// that field would be trained on something else than the file is for: if a
/// sample has several documents, only their positions keep them apart.
inline constexpr char kNeededField[] = "chimera_needs";

/// The file that `text` names. None if it does not end with .npy, .npz or
/// .safetensors. Only before the name of a .npy file, "FIELD=" is a field.
std::optional<ArrayFileName> parseArrayFile(const std::string &text);

/// The arrays of one field. Several threads may call `read` at the same time.
class ArrayField {
public:
  explicit ArrayField(program::Field field) : field(std::move(field)) {}

  /// Adds the next shard: `samples` rows from byte `begin` of `file` on.
  void add(std::shared_ptr<const InputFile> file, uint64_t begin,
           uint64_t samples);

  const std::string &name() const { return field.name; }
  /// The file that was added first, or null.
  const InputFile *firstFile() const {
    return shards.empty() ? nullptr : shards.front().file.get();
  }
  /// The number of samples in all shards.
  uint64_t samples() const { return total; }
  /// Fills `rows` with the values of as many samples as fit, from `sample` on.
  /// Booleans are 0 or 1. Requires whole rows, and that there are so many
  /// samples. Throws std::runtime_error if reading fails.
  void read(uint64_t sample, Bytes rows) const;
  /// The place of a sample, for example "row 3 of 'FILE'".
  std::string describePosition(uint64_t sample) const;
  /// A digest of the numbers of samples and of some samples of each shard.
  uint64_t digest() const;

private:
  struct Shard {
    std::shared_ptr<const InputFile> file;
    uint64_t begin;
    uint64_t first; ///< its first sample's number
    uint64_t count;
  };

  const Shard &shardOf(uint64_t sample) const;

  program::Field field;
  std::vector<Shard> shards;
  uint64_t total = 0;
};

/// Opens the arrays of the given fields, in their order. Throws
/// std::runtime_error, with file and field in the message, if a file cannot be
/// read, if an array has another type or shape than its field, if a field has
/// no array or a file none of the fields, if no field is a file's kNeededField,
/// or if fields have different numbers of samples.
std::vector<ArrayField> openArrays(const std::vector<ArrayFileName> &files,
                                   std::span<const program::Field> fields);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_ARRAYFILES_H
