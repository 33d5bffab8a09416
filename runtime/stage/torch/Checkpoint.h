//===- Checkpoint.h - Tensors in safetensors files --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint in safetensors format. A file is a little-endian uint64, which
// is the length of a JSON object; that object, {"name": {"dtype", "shape",
// "data_offsets": [begin, end]}, ...}, padded with spaces so that the data is
// aligned; and the data.
//
// Large checkpoints are several such files (shards) in one folder with an
// index, which is a JSON object {"weight_map": {"name": "file of its tensor",
// ...}, ...}.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_CHECKPOINT_H
#define CHIMERA_RUNTIME_STAGE_TORCH_CHECKPOINT_H

#include "runtime/device/Bytes.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A checkpoint with its headers read and its files open. Data is read only on
/// request.
class Checkpoint {
public:
  /// A tensor's entry in a header. Unchecked fields are kept as JSON text.
  struct Tensor {
    size_t file;
    bool isObject; ///< whether the header has an object for it
    std::string type, shape, offsets;
    /// The tensor's bytes in the file; none if they are not inside the file.
    std::optional<std::pair<uint64_t, uint64_t>> range;
  };

  /// Opens one safetensors file, or an index (a name that ends with ".json")
  /// and its shards. In a folder, opens "model.safetensors" if it exists, else
  /// "model.safetensors.index.json". Throws std::runtime_error if a file is
  /// missing or invalid, if a shard lacks a tensor that the index assigns to
  /// it, or if two shards have the same tensor.
  explicit Checkpoint(const std::string &path);
  ~Checkpoint();
  Checkpoint(const Checkpoint &) = delete;
  Checkpoint &operator=(const Checkpoint &) = delete;

  const std::map<std::string, Tensor> &tensors() const { return byName; }

  /// Empty if the tensors cover the data of each file without overlaps or gaps,
  /// as the format requires. Else the first file that violates this.
  std::string fileWithGaps() const;

  /// A digest of the headers.
  uint64_t digest() const { return headersDigest; }

  /// Reads bytes of a file. Throws std::runtime_error, naming `what`, if they
  /// cannot be read.
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

#endif // CHIMERA_RUNTIME_STAGE_TORCH_CHECKPOINT_H
