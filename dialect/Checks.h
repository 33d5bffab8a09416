//===- Checks.h - Checks that several ops share -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_CHECKS_H
#define CHIMERA_DIALECT_CHECKS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Fails, with a diagnostic, if `part` is not below `parts`.
mlir::LogicalResult verifyPart(mlir::Operation *op, uint32_t part,
                               uint32_t parts);

/// Checks the tied stage of an all_reduce or all_reduce_start op: the second
/// stage of the two that share parameters. `contributions` is the number of
/// contributions of the op, and `summed` is their type. Contributions of the
/// op's stage and of the tied stage alternate. Fails, with a diagnostic, if the
/// op has a tied stage and sums losses, if the tied stage is not after the op's
/// stage, or if the number of contributions is odd.
template <typename Op>
mlir::LogicalResult verifyTied(Op op, size_t contributions, mlir::Type summed) {
  if (!op.getTied())
    return mlir::success();
  if (mlir::isa<LossType>(summed))
    return op.emitOpError("expected no tied stage for an all-reduce of losses");
  if (*op.getTied() <= op.getStage())
    return op.emitOpError("expected a tied stage after stage ")
           << op.getStage() << ", got " << *op.getTied();
  if (contributions % 2 != 0)
    return op.emitOpError("expected an even number of contributions, of both "
                          "stages in turn, got ")
           << contributions;
  return mlir::success();
}

} // namespace chimera

#endif // CHIMERA_DIALECT_CHECKS_H
