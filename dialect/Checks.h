//===- Checks.h - What ops of several kinds are checked for -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_CHECKS_H
#define CHIMERA_DIALECT_CHECKS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Fails, with a diagnostic, where `part` is not below `parts`.
mlir::LogicalResult verifyPart(mlir::Operation *op, uint32_t part,
                               uint32_t parts);

/// Of an op that sums `contributions` of the type `summed` and may name a tied
/// stage. Fails, with a diagnostic, where these are losses, the tied stage is
/// not a later one, or the contributions are not of both stages in turn. What
/// an all-reduce and its starts have in common: where it sums values of type
/// `summed` for two stages, these give gradients in turn.
template <typename Op>
mlir::LogicalResult verifyTied(Op op, size_t contributions, mlir::Type summed) {
  if (!op.getTied())
    return mlir::success();
  if (mlir::isa<LossType>(summed))
    return op.emitOpError("expected no tied stage of losses");
  if (*op.getTied() <= op.getStage())
    return op.emitOpError("expected a tied stage after stage ")
           << op.getStage() << ", got " << *op.getTied();
  if (contributions % 2 != 0)
    return op.emitOpError("expected contributions of both stages in turn, got ")
           << contributions;
  return mlir::success();
}

} // namespace chimera

#endif // CHIMERA_DIALECT_CHECKS_H
