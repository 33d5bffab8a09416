//===- WeightFiles.h - Files of weights -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of weights. A file has a model's parameters (or their gradients) in
// safetensors format, which any safetensors library can read. Tensors have the
// names of Layers.h: "layers.<n>.<parameter>", or the module's name for an
// exported model. So a file does not depend on stages, workers or schedule. The
// file of a tied model has no head.weight: that matrix is
// layers.0.token_embedding. WeightNames.h maps tensors to other names and
// transposes them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTFILES_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTFILES_H

#include "runtime/model/Stage.h"
#include "runtime/model/weights/FileTypes.h"
#include "runtime/model/weights/InitialValues.h"
#include "runtime/model/weights/TensorFiles.h"
#include "runtime/model/weights/WeightNames.h"
#include "runtime/program/Output.h"

#include <map>
#include <string>

namespace chimera::runtime {

/// Writes the whole model's flat `weights`, with layers in order, to `path`,
/// either completely or not at all (writeAtomically). Returns false, with the
/// reason in `error`, if there is no model that Layers.h accepts, if the size
/// is wrong, or if the file cannot be written.
bool saveWeights(const program::ProgramT &program, ConstBytes weights,
                 const std::string &path, std::string &error,
                 const WeightNames &names = {},
                 program::IfExists ifExists = program::IfExists::Replace);

/// The size of the file that saveWeights writes. Requires a model that Layers.h
/// accepts.
uint64_t weightsFileBytes(const program::ProgramT &program,
                          const WeightNames &names = {});

/// The initial parameters of a program from a file or several files
/// (TensorFiles.h). Each call of `read` reads only the bytes of one parameter.
class LoadedWeights : public InitialValues {
public:
  /// Tensors may have any type that can be converted to the program's weight
  /// type (FileTypes.h). A second copy of a tied model's matrix, under another
  /// name, is allowed if its values are equal. Throws std::runtime_error if a
  /// file is invalid, if tensors overlap or leave gaps in the files, or if
  /// their names, shapes or types do not match the program's model. The message
  /// lists every difference; each wrong type is listed only once.
  LoadedWeights(const program::ProgramT &program, const std::string &path,
                const WeightNames &names = {});

  void read(const std::string &name, program::DataType type,
            const std::vector<int64_t> &shape, Bytes memory) const override;

  /// A digest of the headers and of three blocks of each tensor (begin, middle
  /// and end), so that not every rank has to read whole files. Throws
  /// std::runtime_error if a file cannot be read.
  uint64_t digest() const;

  /// A description of the conversions: "78 tensors of BF16, converted to F32
  /// exactly", or "78 tensors of F32, rounded to BF16". Empty if nothing is
  /// converted.
  std::string conversion() const;

private:
  struct Range {
    size_t file;
    uint64_t begin; ///< offset in the file
    uint64_t elements;
    const FileType *type;
    bool isTransposed;
  };

  void readElements(const std::string &name, const Range &range, uint64_t first,
                    Bytes memory) const;
  bool areEqual(const Range &one, const Range &other) const;

  std::string path;
  program::DataType type; ///< of the program's weights
  TensorFiles files;
  std::map<std::string, Range> ranges; ///< by parameter
  /// The number of converted tensors, by their type in the file.
  std::map<std::string_view, size_t> converted;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTFILES_H
