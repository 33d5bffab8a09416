//===- Allocate.cpp - Buffers for all workers, within their cap -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Allocator.h"

#include "compiler/schedule/Memory.h"
#include "passes/Passes.h"
#include "passes/Workers.h"

#include <algorithm>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_ALLOCATEPASS
#include "passes/Passes.h.inc"

namespace {

struct Allocate : impl::AllocatePassBase<Allocate> {
  void runOnOperation() override {
    bool fit = true;
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(run(pipeline, fit)))
        return signalPassFailure();
    if (!fit)
      signalPassFailure();
  }

  LogicalResult run(PipelineOp pipeline, bool &fit) {
    SmallVector<WorkerOp> workers = workersOf(pipeline);
    if (workers.empty())
      return pipeline.emitOpError(
          "expected workers: run chimera-project first");
    std::vector<Allocated> all(workers.size());
    if (failed(forEachWorker(&getContext(), workers.size(), [&](size_t i) {
          FailureOr<Allocated> allocated = allocate(workers[i]);
          if (succeeded(allocated))
            all[i] = *allocated;
          return LogicalResult(allocated);
        })))
      return failure();
    fit &= succeeded(checkCap(pipeline, workers, all));
    return success();
  }

  /// Refuses a pipeline with one line, whatever the number of workers that take
  /// more than its cap.
  static LogicalResult checkCap(PipelineOp pipeline, ArrayRef<WorkerOp> workers,
                                ArrayRef<Allocated> all) {
    std::optional<uint64_t> cap = pipeline.getMemoryCap();
    auto exceeds = [&](const Allocated &allocated) {
      return static_cast<uint64_t>(allocated.bytes()) > *cap;
    };
    if (!cap || llvm::none_of(all, exceeds))
      return success();
    const Allocated *most = std::max_element(
        all.begin(), all.end(), [](const Allocated &a, const Allocated &b) {
          return a.bytes() < b.bytes();
        });
    InFlightDiagnostic error =
        pipeline.emitOpError("expected workers of at most ")
        << *cap << " bytes (memory_cap), got " << most->bytes() << " on worker "
        << WorkerOp(workers[most - all.begin()]).getIndex() << ": an arena of "
        << most->arena << " and stashes of " << most->stashes;
    return error << schedule::othersAbove(llvm::count_if(all, exceeds) - 1);
  }
};

} // namespace
} // namespace chimera
