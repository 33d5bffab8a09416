//===- BuiltGpt2.h - GPT-2 models of any size -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H
#define CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H

#include "runtime/program/Gpt2Package.h"

#include <stdexcept>
#include <string>

namespace chimera::program {

struct Gpt2Sizes {
  uint32_t layers = 2, heads = 2, width = 8, context = 6, vocabulary = 11;
  double dropout = 0;
  bool tied = false;
};

/// A GPT-2 without its package.
inline ModelT gpt2Of(const Gpt2Sizes &sizes) {
  ModelT model;
  model.architecture = kGpt2;
  model.layers = sizes.layers;
  model.heads = sizes.heads;
  model.width = sizes.width;
  model.context = sizes.context;
  model.vocabulary = sizes.vocabulary;
  model.dropout = sizes.dropout;
  model.tied = sizes.tied;
  return model;
}

/// A GPT-2 whose activations have this type. Throws std::invalid_argument if
/// buildGpt2 refuses its sizes.
inline ModelT builtGpt2(const Gpt2Sizes &sizes,
                        DataType type = DataType::Float32) {
  ModelT model = gpt2Of(sizes);
  if (std::string problem = buildGpt2(model, type); !problem.empty())
    throw std::invalid_argument(problem);
  return model;
}

/// Changes sizes of the program's GPT-2, and its package with them.
template <typename Change>
void changeGpt2(ProgramT &program, const Change &change) {
  change(*program.model);
  if (std::string problem = buildGpt2(*program.model, program.activation_type);
      !problem.empty())
    throw std::invalid_argument(problem);
}

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROGRAM_BUILTGPT2_H
