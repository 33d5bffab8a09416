//===- TensorFiles.h - Tensors in safetensors files -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors in safetensors format. A file consists of
// - a little-endian uint64: the length of the header in bytes,
// - the header: a JSON object {"name": {"dtype", "shape", "data_offsets":
//   [begin, end]}, ...}, padded with spaces so that the data is aligned,
// - the data.
//
// Large sets of tensors are several such files (shards) in one folder with an
// index, which is a JSON object {"weight_map": {"name": "file of its tensor",
// ...}, ...}.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WEIGHTS_TENSORFILES_H
#define CHIMERA_RUNTIME_WEIGHTS_TENSORFILES_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A set of tensors whose files are open and whose headers have been read. Only
/// `read` reads data.
class TensorFiles {
public:
  /// A tensor's entry in a header. `type`, `shape` and `offsets` are JSON text
  /// that has not been checked.
  struct Tensor {
    size_t file;
    bool isObject; ///< whether the header has an object for it
    std::string type, shape, offsets;
    /// The tensor's bytes in the file; none if they are not inside the file.
    std::optional<std::pair<uint64_t, uint64_t>> range;
  };

  /// Opens one safetensors file, or an index (a name that ends with ".json")
  /// and its shards. In a folder, opens the first of "model.safetensors",
  /// "model.safetensors.index.json" and "values.safetensors" (of a package of
  /// chimera-export) that exists. Throws std::runtime_error if a file is
  /// missing or invalid, if a shard lacks a tensor that the index assigns to
  /// it, or if two shards have the same tensor.
  explicit TensorFiles(const std::string &path);
  ~TensorFiles();
  TensorFiles(const TensorFiles &) = delete;
  TensorFiles &operator=(const TensorFiles &) = delete;

  const std::map<std::string, Tensor> &tensors() const { return byName; }

  /// Empty if the tensors of each file cover its data without overlaps or gaps,
  /// as the format requires. Otherwise the path of the first file with an
  /// overlap or a gap.
  std::string fileWithGaps() const;

  /// A digest of the headers.
  uint64_t digest() const { return headersDigest; }

  /// Fills `memory` with the bytes of file number `file` from byte `begin` on.
  /// If they cannot be read, throws std::runtime_error with `what` in the
  /// message.
  void read(size_t file, uint64_t begin, Bytes memory,
            const std::string &what) const;

private:
  struct File {
    std::string path;
    int descriptor;
    uint64_t dataBegin, size;
  };

  void openShards(const std::string &index);
  void open(const std::string &path);
  void close();

  std::vector<File> files;
  std::map<std::string, Tensor> byName;
  uint64_t headersDigest = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WEIGHTS_TENSORFILES_H
