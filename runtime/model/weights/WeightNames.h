//===- WeightNames.h - Names of parameters in files -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of names is a JSON object that maps names of parameters (Layers.h) to
// names of tensors in files of weights:
//
//   {"layers.0.token_embedding": "transformer.wte.weight",
//    "layers.{n}.mlp.bias": "transformer.h.{n-1}.mlp.c_fc.bias",
//    "layers.{n}.mlp.weight":
//      {"name": "transformer.h.{n-1}.mlp.c_fc.weight", "transposed": true},
//    "ignored": ["transformer.h.{n}.attn.bias"]}
//
// In a parameter's name, {n} matches a number; it may occur once. In the
// tensor's name, {n} is replaced by that number, {n-1} by the number minus one,
// and {n+2} by the number plus two. "transposed" means that the file has the
// matrix with rows and columns exchanged. A parameter without an entry keeps
// its name. When a file of weights is read, tensors that match a name in
// "ignored" are skipped. In these names, {n} matches any number.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTNAMES_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTNAMES_H

#include "runtime/program/Program.h"

#include <map>
#include <string>
#include <vector>

namespace chimera::runtime {

/// An empty string if the program has a model that Layers.h accepts, else the
/// reason why there are no weights to read or write.
std::string checkHasWeights(const program::ProgramT &program);

/// The tensor of a parameter in files of weights.
struct NamedTensor {
  std::string name;
  bool isTransposed = false;
};

class WeightNames {
public:
  /// Every parameter keeps its name.
  WeightNames() = default;

  /// Reads a file of names. Throws std::runtime_error, with the file and all
  /// wrong entries:
  /// - if the file cannot be read, is larger than 1 MiB or is not an object as
  ///   above;
  /// - if no parameter of the program uses an entry, if a parameter uses two
  ///   entries, or if two parameters have the same tensor;
  /// - if the tensor of a parameter is ignored, or is transposed but not a
  ///   matrix.
  WeightNames(const program::ProgramT &program, const std::string &path);

  NamedTensor tensorOf(const std::string &parameter) const;

  /// Whether a file may have a tensor of this name in addition to the
  /// parameters' tensors.
  bool isIgnored(const std::string &tensor) const;

  /// A digest of the file; 0 if there is no file.
  uint64_t digest() const { return fileDigest; }

private:
  std::map<std::string, NamedTensor> tensors; ///< by parameter
  std::vector<std::string> ignored;
  uint64_t fileDigest = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_WEIGHTNAMES_H
