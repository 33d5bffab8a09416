//===- Weights.h - A model's weights on disk --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters (or their gradients) as a safetensors file: tensors named
// as Layers.h names them, "layers.<n>.<parameter>" or as an exported model's
// module does, so a file does not depend on stages, workers or schedule. Any
// safetensors library reads it. A tied model's has no head.weight: its matrix
// is layers.0.token_embedding. WeightNames.h gives tensors other names, and
// transposes them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H

#include "runtime/program/Output.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/Checkpoint.h"
#include "runtime/stage/torch/InitialValues.h"
#include "runtime/stage/torch/WeightNames.h"
#include "runtime/stage/torch/Widen.h"

#include <map>
#include <string>

namespace chimera::runtime {

/// Writes the whole model's flat `weights`, layers in order, to `path`: whole
/// or not at all (writeWhole). False, with the reason in `error`, if there is
/// no model that Layers.h accepts, the sizes do not fit or the file cannot be
/// written.
bool saveWeights(const program::ProgramT &program, ConstBytes weights,
                 const std::string &path, std::string &error,
                 const WeightNames &names = {},
                 program::Existing existing = program::Existing::Replaced);

/// The size of the file that it writes. Requires a model that Layers.h accepts.
uint64_t weightsFileBytes(const program::ProgramT &program,
                          const WeightNames &names = {});

/// Such a checkpoint (Checkpoint.h) as the values that a program's parameters
/// begin with. Of a file each call of `read` reads no more than it gives.
class SavedWeights : public InitialValues {
public:
  /// Tensors may have the program's weight type or a narrower one, whose values
  /// are converted exactly (Widen.h). A tied model's matrix may be there under
  /// another name too, with equal values. Throws std::runtime_error if it is no
  /// checkpoint whose tensors fill its files and share no data, or if its
  /// tensors' names, shapes or types do not fit the program's model; the
  /// message lists every difference, of types each once.
  SavedWeights(const program::ProgramT &program, const std::string &path,
               const WeightNames &names = {});

  void read(const std::string &name, program::DataType type,
            const std::vector<int64_t> &shape, Bytes memory) const override;

  /// Of the headers, and of the begin, the middle and the end of each tensor:
  /// to read all of a file is not every rank's matter. Throws
  /// std::runtime_error where it cannot be read.
  uint64_t digest() const;

  /// What is converted: "78 tensors of BF16, converted to F32 exactly"; empty
  /// if nothing is.
  std::string conversion() const;

private:
  struct Range {
    size_t file;
    uint64_t begin; ///< in the file
    uint64_t elements;
    const FileType *type;
    bool isTransposed;
  };

  void readElements(const std::string &name, const Range &range, uint64_t first,
                    Bytes memory) const;
  bool areEqual(const Range &one, const Range &other) const;

  std::string path;
  program::DataType type; ///< of the program's weights
  Checkpoint checkpoint;
  std::map<std::string, Range> ranges;          ///< by parameter
  std::map<std::string_view, size_t> converted; ///< tensors, by type
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H
