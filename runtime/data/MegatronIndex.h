//===- MegatronIndex.h - The index of a Megatron data set -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Megatron-LM writes tokens as plain numbers to NAME.bin, and describes them in
// NAME.idx:
//
//   offset 0   9 bytes   "MMIDIDX\0\0"
//   offset 9   u64       version, 1
//   offset 17  u8        type: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64,
//                        6 float64, 7 float32, 8 uint16
//   offset 18  u64       S, number of sequences
//   offset 26  u64       D, number of entries in the last table
//   offset 34  S × i32   the number of tokens in each sequence
//              S × i64   the offset of each sequence in NAME.bin, in bytes
//              D × i64   the number of the first sequence of each document
//
// All numbers are little-endian. Sequences follow one another in NAME.bin.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_MEGATRONINDEX_H
#define CHIMERA_RUNTIME_DATA_MEGATRONINDEX_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// An open index file. It may be large, so entries of its tables are read only
/// when they are needed.
class MegatronIndex {
public:
  /// Opens the index of the data file `path`. Returns none if `path` does not
  /// have the form NAME.bin, or if NAME.idx does not exist or is not a Megatron
  /// index. Throws std::runtime_error if the index has a type that tokens
  /// cannot have, or if it contradicts itself.
  static std::optional<MegatronIndex> openBeside(const std::string &path);
  /// The file that openBeside(path) reads, or an empty string if there is none.
  static std::string pathBeside(const std::string &path);
  MegatronIndex(MegatronIndex &&) noexcept;
  MegatronIndex &operator=(MegatronIndex &&) noexcept;
  ~MegatronIndex();

  const std::string &path() const;
  const char *type() const;       ///< of a token, such as "int32"
  uint32_t bytesPerToken() const; ///< 1, 2 or 4
  bool isSigned() const;          ///< whether tokens have a signed type
  uint64_t tokens() const;        ///< number of tokens in all sequences

  /// The number of tokens before the end of the document that contains `token`.
  /// Requires token < tokens(). Throws std::runtime_error if the index
  /// contradicts itself.
  uint64_t documentEnd(uint64_t token) const;
  /// The numbers of tokens before the end of each document that has tokens,
  /// ascending. The last one is tokens(). Reads both tables into memory. Throws
  /// std::runtime_error if the index contradicts itself.
  std::vector<uint64_t> documentEnds() const;

private:
  struct File;
  explicit MegatronIndex(std::unique_ptr<File> file);
  uint64_t beginOf(uint64_t sequence) const;
  uint64_t tokensIn(int64_t bytes) const;
  uint64_t expectSequence(int64_t sequence) const;

  std::unique_ptr<File> file;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_MEGATRONINDEX_H
