//===- ModelKey.h - The properties that fix a model's times -----*- C++ -*-===//
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

/// A JSON object with properties of a model by which the profile of another
/// model is recognised: the number of layers, the number of parameter elements
/// of each layer, and the bytes of one sample's inputs.
std::string modelKey(const PackageT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_MODELKEY_H
