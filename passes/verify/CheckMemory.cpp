//===- CheckMemory.cpp - Whether workers fit their caps -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Memory.h"
#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/verify/Verifier.h"

#include <algorithm>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_CHECKMEMORYPASS
#include "passes/Passes.h.inc"

namespace {

/// Fails if a worker exceeds its cap. Emits only one diagnostic for a pipeline,
/// even if several workers exceed their caps.
LogicalResult check(PipelineOp pipeline) {
  SmallVector<WorkerOp> workers = workersOf(pipeline);
  if (workers.empty())
    return pipeline.emitOpError("expected workers: run chimera-project first");
  for (WorkerOp worker : workers)
    if (!worker.allocatedBytes())
      return worker.emitOpError(
          "expected the bytes of its arena and stashes: run chimera-allocate "
          "first");
  std::optional<uint64_t> cap = capOf(pipeline);
  auto exceeds = [&](WorkerOp worker) {
    return *worker.allocatedBytes() > *cap;
  };
  if (!cap || llvm::none_of(workers, exceeds))
    return success();
  WorkerOp most = *std::max_element(
      workers.begin(), workers.end(), [](WorkerOp a, WorkerOp b) {
        return *a.allocatedBytes() < *b.allocatedBytes();
      });
  InFlightDiagnostic error =
      pipeline.emitOpError("expected workers of at most ")
      << *cap << " bytes (memory_cap), got " << *most.allocatedBytes()
      << " on worker " << most.getIndex() << ": an arena of "
      << *most.getArenaBytes() << " and stashes of " << *most.getStashBytes();
  return error << schedule::othersAbove(llvm::count_if(workers, exceeds) - 1);
}

struct CheckMemory : Verifier<impl::CheckMemoryPassBase<CheckMemory>, check> {};

} // namespace
} // namespace chimera
