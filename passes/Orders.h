//===- Orders.h - Orders that are given as text -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chimera.order ops of a pipeline: what each worker runs, before all its
// actions are there.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ORDERS_H
#define CHIMERA_PASSES_ORDERS_H

#include "compiler/schedule/Verify.h"
#include "dialect/Chimera.h"

namespace chimera {

bool hasOrders(PipelineOp pipeline);

/// Fails, with a diagnostic, where the pipeline has none.
mlir::LogicalResult requireOrders(PipelineOp pipeline);

/// The same, and where it has a step or workers already.
mlir::LogicalResult requirePartitioned(PipelineOp pipeline);

/// What the orders of a pipeline say.
struct Orders {
  llvm::SmallVector<OrderOp> lines; ///< by worker
  /// Where each action stands in its line.
  std::vector<std::vector<uint32_t>> places;
  schedule::Schedule schedule;
};

/// Reads the orders of the pipeline that `problem` is of; which backwards it
/// splits is not looked at. Fails, with a diagnostic on the word, where one is
/// wrong, and where a worker has no order or two.
mlir::FailureOr<Orders> readOrders(PipelineOp pipeline,
                                   const schedule::Problem &problem);

/// Reports violations of the orders' schedule on the words that are wrong, up
/// to twenty. Fails if there are any.
mlir::LogicalResult report(const Orders &orders,
                           llvm::ArrayRef<schedule::Violation> violations);

/// Adds the orders that state `schedule`, behind all that the pipeline has.
void writeOrders(PipelineOp pipeline, const schedule::Problem &problem,
                 const schedule::Schedule &schedule);

void eraseOrders(PipelineOp pipeline);

/// Fails, with a diagnostic, where the pipeline still has orders: beside a step
/// that is scheduled they say the same, or something else.
mlir::LogicalResult refuseOrders(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_PASSES_ORDERS_H
