//===- Project.cpp - A region for each worker -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/LoopCarried.h"
#include "passes/Passes.h"
#include "passes/Prefetch.h"
#include "passes/describe/Bridge.h"
#include "passes/schedule/ScheduleAnalysis.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PROJECTPASS
#include "passes/Passes.h.inc"

namespace {

/// Moves the ops of a pipeline's sections into its workers.
class Projector {
public:
  Projector(PipelineOp pipeline, const Layout &layout)
      : pipeline(pipeline), layout(layout),
        builder(OpBuilder::atBlockEnd(&pipeline.getBody().front())) {}

  /// Fails with a diagnostic if an op names no worker or uses a value of
  /// another worker. In this case, some ops of the section have been moved
  /// already.
  LogicalResult run(ArrayRef<SectionOp> sections) {
    if (failed(verifyReplicas(sections, layout)))
      return failure();
    makeWorkers();
    for (size_t i = 0; i < sections.size(); ++i) {
      SectionOp section = sections[i];
      // A single step is the body of each worker. Otherwise the first region is
      // the prologue.
      size_t region = stepsOverlap(sections) ? i : 1;
      if (failed(split(section.getBody().front(), region)))
        return failure();
      section->erase();
    }
    return success();
  }

private:
  /// The positions of each replica's loop-carried values, among the arguments
  /// of a section or among the values that it yields.
  static SmallVector<LoopCarried> replicasOf(TypeRange types) {
    return *loopCarriedOf(types);
  }

  void makeWorkers() {
    for (auto [w, holds] : llvm::enumerate(replicasByWorker(layout)))
      workers.push_back(builder.create<WorkerOp>(
          pipeline.getLoc(), builder.getI32IntegerAttr(w),
          builder.getDenseI32ArrayAttr(holds), DenseI32ArrayAttr(),
          DenseI32ArrayAttr(), /*receive_window=*/IntegerAttr(),
          /*arena_bytes=*/IntegerAttr(), /*stash_bytes=*/IntegerAttr(),
          /*peak_bytes=*/IntegerAttr(), /*peak_instruction=*/IntegerAttr()));
  }

  /// The positions of the loop-carried values of all replicas that the worker
  /// has.
  SmallVector<unsigned> positions(WorkerOp worker,
                                  ArrayRef<LoopCarried> replicas) const {
    SmallVector<unsigned> result;
    ArrayRef<int32_t> holds = worker.getHolds();
    for (size_t i = 0; i < holds.size(); i += 2) {
      const LoopCarried &replica =
          replicas[replicaIndex(layout, holds[i], holds[i + 1])];
      for (unsigned k = replica.first; k < replica.end(); ++k)
        result.push_back(k);
    }
    return result;
  }

  /// Moves the ops of a section into region number `region` of their workers.
  LogicalResult split(Block &block, size_t region) {
    auto yield = cast<YieldOp>(block.back());
    SmallVector<LoopCarried> taken = replicasOf(block.getArgumentTypes());
    SmallVector<LoopCarried> left = replicasOf(yield.getOperandTypes());
    workerBlocks.clear();
    for (WorkerOp worker : workers) {
      Block &workerBlock = worker->getRegion(region).emplaceBlock();
      for (unsigned k : positions(worker, taken)) {
        BlockArgument old = block.getArgument(k);
        old.replaceAllUsesWith(
            workerBlock.addArgument(old.getType(), old.getLoc()));
      }
      workerBlocks.push_back(&workerBlock);
    }
    for (Operation &op :
         llvm::make_early_inc_range(block.without_terminator())) {
      prefetchNext(op);
      auto placed = dyn_cast<PlacedOp>(op);
      std::optional<uint32_t> worker;
      if (placed)
        worker = placed.getWorker();
      if (!worker)
        return op.emitOpError("expected an op that names its worker: run "
                              "chimera-synchronise first");
      if (*worker >= layout.workers)
        return op.emitOpError("expected a worker below ")
               << layout.workers << ", got " << *worker;
      if (failed(move(placed, *worker)))
        return failure();
    }
    for (auto [w, worker] : llvm::enumerate(workers)) {
      SmallVector<Value> results;
      for (unsigned k : positions(worker, left)) {
        Value value = yield.getOperand(k);
        if (value.getParentBlock() != workerBlocks[w])
          return yield.emitOpError("expected worker ")
                 << w << " to yield its own state, got one of worker "
                 << workerOf(value);
        results.push_back(value);
      }
      builder.setInsertionPointToEnd(workerBlocks[w]);
      builder.create<YieldOp>(yield.getLoc(), results);
    }
    return success();
  }

  /// Moves `op`, with its regions, to the end of the block of its worker. Fails
  /// with a diagnostic unless all operands of `op` have been moved to this
  /// block.
  LogicalResult move(PlacedOp op, uint32_t worker) {
    Block *workerBlock = workerBlocks[worker];
    op.setWorker(std::nullopt);
    if (auto group = dyn_cast<GroupOp>(op.getOperation()))
      for (Operation &post : group.getPosts().front().without_terminator()) {
        cast<PlacedOp>(post).setWorker(std::nullopt);
        if (failed(checkOperands(&post, worker)))
          return failure();
      }
    if (failed(checkOperands(op, worker)))
      return failure();
    op->moveBefore(workerBlock, workerBlock->end());
    return success();
  }

  LogicalResult checkOperands(Operation *op, uint32_t worker) {
    for (Value operand : op->getOperands())
      if (operand.getParentBlock() != workerBlocks[worker])
        return op->emitOpError("expected values of worker ")
               << worker << ", got one of worker " << workerOf(operand)
               << ": run chimera-communicate and chimera-synchronise first";
    return success();
  }

  /// The worker of `value`. Requires that `value` has been moved to its worker.
  size_t workerOf(Value value) const {
    return llvm::find(workerBlocks, value.getParentBlock()) -
           workerBlocks.begin();
  }

  PipelineOp pipeline;
  const Layout &layout;
  OpBuilder builder;
  SmallVector<WorkerOp> workers;
  SmallVector<Block *>
      workerBlocks; ///< block of each worker for the current section
};

LogicalResult project(PipelineOp pipeline) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  return Projector(pipeline, *layout).run(*sections);
}

struct Project : impl::ProjectPassBase<Project> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(project(pipeline)))
        return signalPassFailure();
    markAnalysesPreserved<ScheduleAnalysis>();
  }
};

} // namespace
} // namespace chimera
