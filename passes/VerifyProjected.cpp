//===- VerifyProjected.cpp - Each worker has its stages and its actions ---===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Channels.h"
#include "passes/Passes.h"
#include "passes/Sections.h"
#include "passes/Workers.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYPROJECTEDPASS
#include "passes/Passes.h.inc"

namespace {

/// The replicas on worker `w`, pair by pair.
std::vector<int32_t> replicasOn(const Layout &layout, uint32_t w) {
  std::vector<int32_t> pairs;
  for (uint32_t p = 0; p < layout.directions.size(); ++p)
    for (uint32_t s = 0; s < layout.stages.size(); ++s)
      if (layout.workerOf(p, s) == static_cast<int32_t>(w)) {
        pairs.push_back(static_cast<int32_t>(p));
        pairs.push_back(static_cast<int32_t>(s));
      }
  return pairs;
}

/// There are all workers, in their order, each with the replicas that the
/// placement puts there.
LogicalResult verifyWorkers(PipelineOp pipeline, const Layout &layout,
                            ArrayRef<WorkerOp> workers) {
  if (workers.size() != layout.workers)
    return pipeline.emitOpError("expected ")
           << layout.workers << " workers, got " << workers.size()
           << (workers.empty() ? ": run chimera-project first" : "");
  LogicalResult result = success();
  for (auto [w, worker] : llvm::enumerate(workers)) {
    auto index = static_cast<uint32_t>(w);
    if (WorkerOp(worker).getIndex() != index)
      result = WorkerOp(worker).emitOpError("expected worker ")
               << index << " here";
    else if (WorkerOp(worker).getHolds() !=
             ArrayRef(replicasOn(layout, index)))
      result = WorkerOp(worker).emitOpError(
          "expected it to hold the stages that the directions place on it");
  }
  return result;
}

LogicalResult verify(PipelineOp pipeline) {
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
          result = op.emitOpError("expected no worker on an op that is inside "
                                  "one");
        channels.note(op, worker.getIndex());
      }
    if (failed(channels.verify()))
      result = failure();
  }
  if (failed(result) || failed(verifySections(pipeline)))
    return failure();
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  return verifySchedule(pipeline, *of);
}

struct VerifyProjected : impl::VerifyProjectedPassBase<VerifyProjected> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(verify(pipeline)))
        signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace chimera
