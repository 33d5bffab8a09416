//===- ModelSizes.h - Which model a measurement is of -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_MODELSIZES_H
#define CHIMERA_RUNTIME_PROGRAM_MODELSIZES_H

#include "runtime/program/Program.h"

#include <string>

namespace chimera::program {

/// What of a model decides how long its layers take for a sample, as a JSON
/// object: its architecture and sizes. A package states none: of it the
/// parameters of each layer, and the bytes of a sample of its inputs, which are
/// the same for all sizes of a micro-batch that it was exported for.
std::string sizesOf(const ModelT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_MODELSIZES_H
