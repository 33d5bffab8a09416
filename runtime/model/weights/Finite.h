//===- Finite.h - Whether numbers are finite --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_WEIGHTS_FINITE_H
#define CHIMERA_RUNTIME_MODEL_WEIGHTS_FINITE_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

namespace chimera::runtime {

/// Whether no element is infinite or NaN. `elements` is host memory.
bool areFinite(program::DataType type, ConstBytes elements);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_WEIGHTS_FINITE_H
