//===- Workers.cpp - Work on all workers in parallel ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Workers.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"

using namespace mlir;

namespace chimera {

SmallVector<WorkerOp> workersOf(PipelineOp pipeline) {
  SmallVector<WorkerOp> workers;
  if (!pipeline.getBody().empty())
    llvm::append_range(workers, pipeline.getBody().front().getOps<WorkerOp>());
  return workers;
}

LogicalResult requireProjected(WorkerOp worker) {
  if (worker.getArguments())
    return worker.emitOpError("expected a worker without buffers, as "
                              "chimera-project makes it");
  return success();
}

LogicalResult forEachWorker(MLIRContext *context, size_t workers,
                            function_ref<LogicalResult(size_t)> work) {
  ParallelDiagnosticHandler diagnostics(context);
  // Do not use failableParallelForEach: which errors it reports is not
  // deterministic.
  std::vector<LogicalResult> results(workers, success());
  parallelFor(context, 0, workers, [&](size_t i) {
    diagnostics.setOrderIDForThread(i);
    results[i] = work(i);
    diagnostics.eraseOrderIDForThread();
  });
  return success(llvm::all_of(results, llvm::succeeded));
}

} // namespace chimera
