//===- ModelKey.h - Recognises a model --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_MODELKEY_H
#define CHIMERA_RUNTIME_PROGRAM_MODELKEY_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera::program {

/// A JSON object by which profiles and checkpoints of another model are
/// recognised: the number of layers, the number of parameter elements of each
/// layer, and the bytes of one sample's inputs. Models that differ only in
/// their operators, for example in the number of heads, have the same key.
std::string modelKey(const PackageT &model);

/// Says how the model with this key differs from `model`: "expected 96
/// parameters in layer 2 ('blocks.1'), got 48". Names the first difference
/// only. Empty if `model` has the same key.
std::string differenceOfModels(const std::string &key, const PackageT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_MODELKEY_H
