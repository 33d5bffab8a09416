//===- Orders.h - Orders that are given as text -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes the chimera.order ops of a pipeline. They state the order of
// actions on each worker as text, before the action ops exist.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBE_ORDERS_H
#define CHIMERA_PASSES_DESCRIBE_ORDERS_H

#include "compiler/schedule/verify/Verify.h"
#include "dialect/Chimera.h"

namespace chimera {

bool hasOrders(PipelineOp pipeline);

/// Fails with a diagnostic if the pipeline has no chimera.order ops.
mlir::LogicalResult requireOrders(PipelineOp pipeline);

/// Fails with a diagnostic if the pipeline has no chimera.order ops, or if it
/// already has a section or a worker.
mlir::LogicalResult requirePartitioned(PipelineOp pipeline);

/// The parsed chimera.order ops of a pipeline.
struct Orders {
  llvm::SmallVector<OrderOp> lines; ///< by worker
  /// The offset of each action in the text of its line.
  std::vector<std::vector<uint32_t>> wordStarts;
  schedule::Schedule schedule;
};

/// Parses the orders of the pipeline. `problem` is the problem of the pipeline;
/// its `splits` are not used. If an order is wrong, fails with a diagnostic on
/// the wrong word. Also fails if a worker has no order or has two.
mlir::FailureOr<Orders> readOrders(PipelineOp pipeline,
                                   const schedule::Problem &problem);

/// Reports up to twenty violations of the parsed schedule, each on the word
/// that is wrong. Fails if there are any.
mlir::LogicalResult report(const Orders &orders,
                           llvm::ArrayRef<schedule::Violation> violations);

/// Adds orders that state `schedule` at the end of the pipeline's body.
void writeOrders(PipelineOp pipeline, const schedule::Problem &problem,
                 const schedule::Schedule &schedule);

void eraseOrders(PipelineOp pipeline);

/// Fails with a diagnostic if the pipeline still has orders. A scheduled step
/// has an order of its own, so chimera.order ops would repeat it or contradict
/// it.
mlir::LogicalResult refuseOrders(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBE_ORDERS_H
