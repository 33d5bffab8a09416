//===- Part.h - Parts of a micro-batch --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_PART_H
#define CHIMERA_DIALECT_PART_H

#include "dialect/Chimera.h"

namespace chimera {

/// What actions and messages have in common: part `part` of `parts` is one.
mlir::LogicalResult verifyPart(mlir::Operation *op, uint32_t part,
                               uint32_t parts);

} // namespace chimera

#endif // CHIMERA_DIALECT_PART_H
