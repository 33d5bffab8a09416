//===- Workers.h - Work on all workers in parallel --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_WORKERS_H
#define CHIMERA_PASSES_WORKERS_H

#include "dialect/Chimera.h"

namespace chimera {

/// The workers of a projected pipeline, in the order of the block.
llvm::SmallVector<WorkerOp> workersOf(PipelineOp pipeline);

/// Fails with a diagnostic if the worker has been allocated already.
mlir::LogicalResult requireProjected(WorkerOp worker);

/// Calls `work` with each index below `workers`, in parallel if the context
/// allows threads. The calls may run in parallel because workers share no
/// value. Diagnostics are emitted in the order of the indices. Fails if any
/// call fails.
mlir::LogicalResult
forEachWorker(mlir::MLIRContext *context, size_t workers,
              llvm::function_ref<mlir::LogicalResult(size_t)> work);

} // namespace chimera

#endif // CHIMERA_PASSES_WORKERS_H
