//===- VerifyProjected.cpp - Each worker has its stages and its actions ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Workers.h"
#include "passes/describe/Bridge.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/schedule/ScheduledProblem.h"
#include "passes/schedule/Sections.h"
#include "passes/verify/Channels.h"
#include "passes/verify/Verifier.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYPROJECTEDPASS
#include "passes/Passes.h.inc"

namespace {

/// Checks that all workers exist, in order. Each must have the replicas that
/// the placement puts on it, and the sections that the pipeline needs: three if
/// steps overlap, otherwise one.
LogicalResult verifyWorkers(PipelineOp pipeline, const Layout &layout,
                            ArrayRef<WorkerOp> workers) {
  if (workers.size() != layout.workers)
    return pipeline.emitOpError("expected ")
           << layout.workers << " workers, got " << workers.size()
           << (workers.empty() ? ": run chimera-project first" : "");
  const bool overlaps = schedule::stepsOverlap(updatesOf(pipeline));
  LogicalResult result = success();
  for (auto [w, holds] : llvm::enumerate(replicasByWorker(layout))) {
    WorkerOp worker = workers[w];
    if (worker.getIndex() != w)
      result = worker.emitOpError("expected worker ") << w << " here";
    else if (worker.getHolds() != ArrayRef(holds))
      result = worker.emitOpError(
          "expected holds to list the stages that the directions place on it");
    else if (worker.getSections().size() != (overlaps ? 3 : 1))
      result =
          worker.emitOpError("expected ")
          << (overlaps ? "a prologue, a step and an epilogue" : "a step alone")
          << ", as updates(" << stringifyUpdates(pipeline.getUpdates())
          << ") requires";
  }
  return result;
}

LogicalResult verifyProjected(PipelineOp pipeline) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return failure();
  SmallVector<WorkerOp> workers = workersOf(pipeline);
  if (failed(verifyWorkers(pipeline, *layout, workers)))
    return failure();
  for (auto section : pipeline.getBody().front().getOps<SectionOp>())
    return section->emitOpError("expected no section beside workers");
  LogicalResult result = success();
  for (size_t k = 0; k < workers.front().getSections().size(); ++k) {
    Channels channels;
    for (WorkerOp worker : workers)
      for (Operation &op : worker.getSections()[k]->without_terminator()) {
        if (auto placed = dyn_cast<PlacedOp>(op); placed && placed.getWorker())
          result =
              op.emitOpError("expected no `on N` on an op inside a worker");
        if (failed(verifyAwaited(op)))
          result = failure();
        channels.add(op, worker.getIndex());
      }
    if (failed(channels.verify()))
      result = failure();
  }
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  if (failed(verifySections(pipeline, of->problem)) ||
      failed(verifySchedule(pipeline, *of)))
    return failure();
  return result;
}

struct VerifyProjected
    : Verifier<impl::VerifyProjectedPassBase<VerifyProjected>,
               verifyProjected> {};

} // namespace
} // namespace chimera
