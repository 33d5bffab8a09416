//===- BuiltGpt2.h - GPT-2 models of any size -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H

#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Program.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace chimera::program {

/// The sizes of a small GPT-2.
struct SmallGpt2 {
  uint32_t layers = 2, heads = 2, width = 8, context = 6, vocabulary = 11;
  double dropout = 0;
  bool tied = false;

  Gpt2Sizes sizes() const {
    return {layers, heads, width, context, vocabulary, dropout, tied};
  }
};

/// A GPT-2 whose activations have this type. Throws std::invalid_argument if
/// gpt2Package refuses its sizes.
inline PackageT builtGpt2(const SmallGpt2 &gpt2,
                          DataType type = DataType::Float32) {
  std::string error;
  std::unique_ptr<PackageT> package = gpt2Package(gpt2.sizes(), type, error);
  if (!package)
    throw std::invalid_argument(error);
  return std::move(*package);
}

/// Gives the program a GPT-2 of these sizes, in the type of its activations.
inline void setGpt2(ProgramT &program, const SmallGpt2 &gpt2) {
  program.model =
      std::make_unique<PackageT>(builtGpt2(gpt2, program.activation_type));
}

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H
