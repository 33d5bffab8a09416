//===- Project.cpp - A region for each worker -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PROJECTPASS
#include "passes/Passes.h.inc"

namespace {

/// The worker that has `value`, an argument of the step or a result in it.
uint32_t homeOf(Value value, const Layout &layout) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    size_t replica = argument.getArgNumber() / 2;
    size_t stages = layout.stages.size();
    return layout.workerOf(replica / stages, replica % stages);
  }
  return *cast<PlacedOp>(value.getDefiningOp()).getWorker();
}

/// `op` and, in a group, its posts use values of `worker` only.
LogicalResult checkHome(Operation *op, uint32_t worker, const Layout &layout) {
  for (Value operand : op->getOperands())
    if (uint32_t home = homeOf(operand, layout); home != worker)
      return op->emitOpError("expected values of worker ")
             << worker << ", got one of worker " << home
             << ": run chimera-communicate and chimera-synchronise first";
  if (auto group = dyn_cast<GroupOp>(op))
    for (Operation &post : group.getPosts().front().without_terminator())
      if (failed(checkHome(&post, worker, layout)))
        return failure();
  return success();
}

/// The step is one that its workers can take apart.
LogicalResult check(Block &block, const Layout &layout) {
  size_t replicas = layout.directions.size() * layout.stages.size();
  if (block.getNumArguments() != 2 * replicas)
    return block.getParentOp()->emitOpError("expected weights and optimizer "
                                            "state of ")
           << replicas << " replicas as arguments, got "
           << block.getNumArguments();
  for (Operation &op : block.without_terminator()) {
    auto placed = dyn_cast<PlacedOp>(op);
    if (!placed || !placed.getWorker())
      return op.emitOpError("expected an op that names its worker: run "
                            "chimera-synchronise first");
    if (*placed.getWorker() >= layout.workers())
      return op.emitOpError("expected a worker below ")
             << layout.workers() << ", got " << *placed.getWorker();
    if (failed(checkHome(&op, *placed.getWorker(), layout)))
      return failure();
  }
  for (BlockArgument argument : block.getArguments()) {
    Value result = block.back().getOperand(argument.getArgNumber());
    if (homeOf(result, layout) != homeOf(argument, layout))
      return block.back().emitOpError("expected worker ")
             << homeOf(argument, layout) << " to yield its own state, got one "
             << "of worker " << homeOf(result, layout);
  }
  return success();
}

/// Makes the workers, empty but for their arguments, and lets the uses of the
/// step's arguments use theirs.
SmallVector<WorkerOp> makeWorkers(PipelineOp pipeline, const Layout &layout,
                                  Block &step, OpBuilder &builder) {
  SmallVector<SmallVector<int32_t>> holds(layout.workers());
  for (size_t p = 0; p < layout.directions.size(); ++p)
    for (size_t s = 0; s < layout.stages.size(); ++s)
      holds[layout.workerOf(p, s)].append(
          {static_cast<int32_t>(p), static_cast<int32_t>(s)});
  SmallVector<WorkerOp> workers;
  for (size_t w = 0; w < layout.workers(); ++w) {
    auto worker = builder.create<WorkerOp>(
        pipeline.getLoc(), builder.getI32IntegerAttr(w),
        builder.getDenseI32ArrayAttr(holds[w]), DenseI32ArrayAttr(),
        IntegerAttr(), IntegerAttr(), IntegerAttr());
    Block &block = worker.getBody().emplaceBlock();
    for (size_t i = 0; i < holds[w].size(); i += 2) {
      unsigned state = stateIndex(layout, holds[w][i], holds[w][i + 1]);
      for (unsigned k : {state, state + 1}) {
        BlockArgument old = step.getArgument(k);
        old.replaceAllUsesWith(block.addArgument(old.getType(), old.getLoc()));
      }
    }
    workers.push_back(worker);
  }
  return workers;
}

LogicalResult project(PipelineOp pipeline) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return failure();
  FailureOr<StepOp> step = stepOf(pipeline);
  if (failed(step))
    return failure();
  Block &block = step->getBody().front();
  if (failed(check(block, *layout)))
    return failure();
  OpBuilder builder(*step);
  SmallVector<WorkerOp> workers =
      makeWorkers(pipeline, *layout, block, builder);
  auto yield = cast<YieldOp>(block.back());
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    auto placed = cast<PlacedOp>(op);
    Block &home = workers[*placed.getWorker()].getBody().front();
    placed.setWorker(std::nullopt);
    if (auto group = dyn_cast<GroupOp>(op))
      for (Operation &post : group.getPosts().front().without_terminator())
        cast<PlacedOp>(post).setWorker(std::nullopt);
    op.moveBefore(&home, home.end());
  }
  for (WorkerOp worker : workers) {
    SmallVector<Value> results;
    ArrayRef<int32_t> holds = worker.getHolds();
    for (size_t i = 0; i < holds.size(); i += 2) {
      unsigned state = stateIndex(*layout, holds[i], holds[i + 1]);
      results.append({yield.getOperand(state), yield.getOperand(state + 1)});
    }
    builder.setInsertionPointToEnd(&worker.getBody().front());
    builder.create<YieldOp>(yield.getLoc(), results);
  }
  step->erase();
  return success();
}

struct Project : impl::ProjectPassBase<Project> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(project(pipeline)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace chimera
