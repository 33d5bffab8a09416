//===- Tied.h - Gradients of parameters on two stages -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_TIED_H
#define CHIMERA_DIALECT_TIED_H

#include "dialect/Chimera.h"

namespace chimera {

/// What an all-reduce and its starts have in common: where it sums values of
/// type `summed` for two stages, these give gradients in turn.
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

#endif // CHIMERA_DIALECT_TIED_H
