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
/// op has a tied stage and sums losses or norms, if the tied stage is not after
/// the op's stage, or if the number of contributions is odd.
template <typename Op>
mlir::LogicalResult verifyTied(Op op, size_t contributions, mlir::Type summed) {
  if (!op.getTied())
    return mlir::success();
  if (!mlir::isa<WeightGradientType>(summed))
    return op.emitOpError("expected no tied stage for an all-reduce of ")
           << (mlir::isa<LossType>(summed) ? "losses" : "squared norms");
  if (*op.getTied() <= op.getStage())
    return op.emitOpError("expected a tied stage after stage ")
           << op.getStage() << ", got " << *op.getTied();
  if (contributions % 2 != 0)
    return op.emitOpError("expected an even number of contributions, of both "
                          "stages in turn, got ")
           << contributions;
  return mlir::success();
}

/// Checks the number of contributions of an all_reduce or all_reduce_start op
/// that sums squared norms: one for each stage of each pipeline. Fails, with a
/// diagnostic, if it is not a multiple of the number of stages.
template <typename Op>
mlir::LogicalResult verifyNorms(Op op, size_t contributions) {
  const size_t stages = op.getStage() + size_t(1);
  if (!op.sumsNorms() || contributions % stages == 0)
    return mlir::success();
  return op.emitOpError("expected the squared norms of ")
         << stages << " stages of each pipeline, got " << contributions;
}

} // namespace chimera

#endif // CHIMERA_DIALECT_CHECKS_H
