//===- WeightNames.h - What files of weights call parameters ----*- C++ -*-===//
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
// In a parameter's name {n}, once, stands for a number. In the tensor's name
// the number takes the place of {n}, one less that of {n-1}, two more that of
// {n+2}. A transposed tensor is a matrix with its rows and columns exchanged. A
// parameter without an entry keeps its name. A file that is read may also have
// tensors whose names are in "ignored", where {n} stands for a number too; they
// are not read.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTNAMES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTNAMES_H

#include "runtime/program/Program.h"

#include <map>
#include <string>
#include <vector>

namespace chimera::runtime {

/// Empty if the program has a model that Layers.h accepts, else why there are
/// no weights to read or write.
std::string checkHasWeights(const program::ProgramT &program);

/// A parameter's tensor in files of weights.
struct NamedTensor {
  std::string name;
  bool isTransposed = false;
};

class WeightNames {
public:
  /// Every parameter has its own name.
  WeightNames() = default;

  /// Reads a file of names. Throws std::runtime_error, with the file and all
  /// entries that are wrong, if it cannot be read, has more than 1 MiB or is no
  /// such object; if an entry is not used by any parameter of the program, a
  /// parameter uses two entries, or two parameters have one tensor; if the
  /// tensor of a parameter is ignored or, without being a matrix, transposed.
  WeightNames(const program::ProgramT &program, const std::string &path);

  NamedTensor tensorOf(const std::string &parameter) const;

  /// Whether a file that is read may have a tensor of this name beside those of
  /// parameters.
  bool isIgnored(const std::string &tensor) const;

  /// Of the file; 0 without one.
  uint64_t digest() const { return fileDigest; }

private:
  std::map<std::string, NamedTensor> tensors; ///< by parameter
  std::vector<std::string> ignored;
  uint64_t fileDigest = 0;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTNAMES_H
