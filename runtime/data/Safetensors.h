//===- Safetensors.h - Tensors in a safetensors file ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A safetensors file consists of
// - a little-endian uint64: the length of the header in bytes,
// - the header: a JSON object {"name": {"dtype", "shape", "data_offsets":
//   [begin, end]}, ...}, padded with spaces so that the data is aligned; its
//   member "__metadata__" has strings about the file,
// - the data.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_SAFETENSORS_H
#define CHIMERA_RUNTIME_DATA_SAFETENSORS_H

#include "runtime/data/InputFile.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace chimera::runtime {

/// A tensor's entry in a header. `type`, `shape` and `offsets` are JSON text
/// that has not been checked.
struct SafetensorsEntry {
  bool isObject; ///< whether the header has an object for it
  std::string type, shape, offsets;
  /// The tensor's bytes in the file; none if they are not inside the file.
  std::optional<std::pair<uint64_t, uint64_t>> range;
};

/// A safetensors file whose header has been read.
class SafetensorsFile {
public:
  /// Throws std::runtime_error, with a message that starts with `failure` (see
  /// InputFile.h), if the file cannot be read or has no valid header.
  SafetensorsFile(const std::string &path, const std::string &failure);

  const InputFile &file() const { return input; }
  InputFile takeFile() && { return std::move(input); }
  const std::map<std::string, SafetensorsEntry> &tensors() const {
    return byName;
  }
  /// The string `key` of the file's metadata; empty if there is none.
  std::string metadata(const std::string &key) const;
  /// Whether tensors overlap or leave gaps in the data. The format forbids
  /// both.
  bool hasGaps() const;
  /// A digest of the header.
  uint64_t headerDigest() const { return digest; }

private:
  InputFile input;
  uint64_t dataBegin = 0, digest = 0;
  std::map<std::string, SafetensorsEntry> byName;
  std::map<std::string, std::string> ofFile; ///< metadata
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_SAFETENSORS_H
