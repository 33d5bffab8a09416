//===- Checkpoint.h - Tensors in safetensors files --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// safetensors: a little-endian uint64, the length of a JSON object; the object,
// {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...}, padded with
// spaces so that the data is aligned; the data.
//
// Large checkpoints are several such files (shards) in one folder, beside an
// index: a JSON object {"weight_map": {"name": "file of its tensor", ...},
// ...}.
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

/// The headers of a checkpoint, with its files open. It reads data only when it
/// is asked to.
class Checkpoint {
public:
  /// What a header says of a tensor, as JSON where it may say anything.
  struct Tensor {
    size_t file;
    bool isObject; ///< else the header says nothing of it
    std::string type, shape, offsets;
    /// Where its bytes are in the file; none if they are not inside it.
    std::optional<std::pair<uint64_t, uint64_t>> range;
  };

  /// Opens a safetensors file; an index, whose name ends with ".json", and its
  /// shards; or of a folder "model.safetensors", else
  /// "model.safetensors.index.json". Throws std::runtime_error if one is
  /// missing or no such file, a shard lacks a tensor that the index says it
  /// has, or two have the same one.
  explicit Checkpoint(const std::string &path);
  ~Checkpoint();
  Checkpoint(const Checkpoint &) = delete;
  Checkpoint &operator=(const Checkpoint &) = delete;

  const std::map<std::string, Tensor> &tensors() const { return byName; }

  /// Empty if the tensors fill the data of each file and share none of it, as
  /// the format demands, else the file in which they do not.
  std::string unfilled() const;

  /// Of the headers.
  uint64_t digest() const { return headersDigest; }

  /// Reads bytes of a file. Throws std::runtime_error, which names `what`,
  /// where they cannot be read.
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
