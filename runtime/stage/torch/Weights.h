//===- Weights.h - A model's weights on disk --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters (or their gradients) as a safetensors file: tensors named
// "layers.<n>.<parameter>" as Layout.h numbers and names them, so a file does
// not depend on stages, workers or schedule. Any safetensors library reads it.
// A tied model's has no head.weight: its matrix is layers.0.token_embedding.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H

#include "runtime/program/Output.h"
#include "runtime/stage/Stage.h"

#include <string>

namespace chimera::runtime {

/// Writes the whole model's flat `weights`, layers in order, to `path`: whole
/// or not at all (writeWhole). False, with the reason in `error`, if there is
/// no model that Layout.h accepts, the sizes do not fit or the file cannot be
/// written.
bool saveWeights(const program::ProgramT &program, ConstBytes weights,
                 const std::string &path, std::string &error,
                 program::Existing existing = program::Existing::Replaced);

/// The size of the file that it writes. Requires a model that Layout.h accepts.
uint64_t weightsFileBytes(const program::ProgramT &program);

/// Fills `weights` from such a file. False, with the reason in `error` and
/// `weights` untouched, if it is no safetensors file, or its tensors' names,
/// shapes or type are not those of the program's model.
bool loadWeights(const program::ProgramT &program, const std::string &path,
                 Bytes weights, std::string &error);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_WEIGHTS_H
