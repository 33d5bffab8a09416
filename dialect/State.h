//===- State.h - What steps and workers hand on -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_STATE_H
#define CHIMERA_DIALECT_STATE_H

#include "dialect/Chimera.h"

namespace chimera {

/// What a step and a worker have in common: the block of `op` takes weights and
/// optimizer state in turn, and yields values of the same types.
mlir::LogicalResult verifyState(mlir::Operation *op, mlir::Block &block);

} // namespace chimera

#endif // CHIMERA_DIALECT_STATE_H
