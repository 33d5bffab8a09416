//===- SquaredNorm.h - The sum of squares of elements -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_OPTIMIZER_SQUAREDNORM_H
#define CHIMERA_RUNTIME_MODEL_OPTIMIZER_SQUAREDNORM_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The sum of the squares of all elements, computed in float64. `elements` is
/// host memory. The order of summation depends only on the number of elements,
/// so the result does not depend on the number of threads or on the processor.
double squaredNormOf(program::DataType type, ConstBytes elements);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_OPTIMIZER_SQUAREDNORM_H
