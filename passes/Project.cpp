//===- Project.cpp - A region for each worker -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/State.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PROJECTPASS
#include "passes/Passes.h.inc"

namespace {

/// Takes the sections of a pipeline apart.
class Projector {
public:
  Projector(PipelineOp pipeline, const Layout &layout)
      : pipeline(pipeline), layout(layout),
        builder(OpBuilder::atBlockEnd(&pipeline.getBody().front())) {}

  LogicalResult run(ArrayRef<SectionOp> sections) {
    if (failed(verifyReplicas(sections, layout)))
      return failure();
    for (SectionOp section : sections)
      if (failed(check(section.getBody().front())))
        return failure();
    makeWorkers();
    for (size_t i = 0; i < sections.size(); ++i) {
      SectionOp section = sections[i];
      // A step alone is a worker's body, else its first region is a prologue.
      size_t region = stepsOverlap(sections) ? i : 1;
      split(section.getBody().front(), region);
      section->erase();
    }
    return success();
  }

private:
  /// What each replica hands on at an end of a section.
  static SmallVector<Carried> replicasOf(TypeRange types) {
    return *carriedBy(types);
  }

  /// The worker that has `value`, an argument of the section or a result in it.
  static uint32_t homeOf(Value value, ArrayRef<uint32_t> homes) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return homes[argument.getArgNumber()];
    return *cast<PlacedOp>(value.getDefiningOp()).getWorker();
  }

  /// `op` and, in a group, its posts use values of `worker` only.
  LogicalResult checkHome(Operation *op, uint32_t worker,
                          ArrayRef<uint32_t> homes) {
    for (Value operand : op->getOperands())
      if (uint32_t home = homeOf(operand, homes); home != worker)
        return op->emitOpError("expected values of worker ")
               << worker << ", got one of worker " << home
               << ": run chimera-communicate and chimera-synchronise first";
    if (auto group = dyn_cast<GroupOp>(op))
      for (Operation &post : group.getPosts().front().without_terminator())
        if (failed(checkHome(&post, worker, homes)))
          return failure();
    return success();
  }

  /// The section is one that its workers can take apart.
  LogicalResult check(Block &block) {
    SmallVector<uint32_t> taken = homesOf(block.getArgumentTypes(), layout);
    for (Operation &op : block.without_terminator()) {
      auto placed = dyn_cast<PlacedOp>(op);
      if (!placed || !placed.getWorker())
        return op.emitOpError("expected an op that names its worker: run "
                              "chimera-synchronise first");
      if (*placed.getWorker() >= layout.workers())
        return op.emitOpError("expected a worker below ")
               << layout.workers() << ", got " << *placed.getWorker();
      if (failed(checkHome(&op, *placed.getWorker(), taken)))
        return failure();
    }
    Operation &yield = block.back();
    for (auto [i, expected] :
         llvm::enumerate(homesOf(yield.getOperandTypes(), layout)))
      if (uint32_t home = homeOf(yield.getOperand(i), taken); home != expected)
        return yield.emitOpError("expected worker ")
               << expected << " to yield its own state, got one of worker "
               << home;
    return success();
  }

  void makeWorkers() {
    SmallVector<SmallVector<int32_t>> holds(layout.workers());
    for (size_t p = 0; p < layout.directions.size(); ++p)
      for (size_t s = 0; s < layout.stages.size(); ++s)
        holds[layout.workerOf(p, s)].append(
            {static_cast<int32_t>(p), static_cast<int32_t>(s)});
    for (size_t w = 0; w < layout.workers(); ++w)
      workers.push_back(builder.create<WorkerOp>(
          pipeline.getLoc(), builder.getI32IntegerAttr(w),
          builder.getDenseI32ArrayAttr(holds[w]), DenseI32ArrayAttr(),
          DenseI32ArrayAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr()));
  }

  /// What the replicas of `worker` hand on, by position.
  SmallVector<unsigned> positions(WorkerOp worker,
                                  ArrayRef<Carried> replicas) const {
    SmallVector<unsigned> result;
    ArrayRef<int32_t> holds = worker.getHolds();
    for (size_t i = 0; i < holds.size(); i += 2) {
      const Carried &replica =
          replicas[replicaIndex(layout, holds[i], holds[i + 1])];
      for (unsigned k = replica.first; k < replica.end(); ++k)
        result.push_back(k);
    }
    return result;
  }

  /// Moves the ops of a section to the workers' region of that number.
  void split(Block &block, size_t region) {
    auto yield = cast<YieldOp>(block.back());
    SmallVector<Carried> taken = replicasOf(block.getArgumentTypes());
    SmallVector<Carried> left = replicasOf(yield.getOperandTypes());
    SmallVector<Block *> homes;
    for (WorkerOp worker : workers) {
      Block &home = worker->getRegion(region).emplaceBlock();
      for (unsigned k : positions(worker, taken)) {
        BlockArgument old = block.getArgument(k);
        old.replaceAllUsesWith(home.addArgument(old.getType(), old.getLoc()));
      }
      homes.push_back(&home);
    }
    for (Operation &op :
         llvm::make_early_inc_range(block.without_terminator())) {
      auto placed = cast<PlacedOp>(op);
      Block &home = *homes[*placed.getWorker()];
      placed.setWorker(std::nullopt);
      if (auto group = dyn_cast<GroupOp>(op))
        for (Operation &post : group.getPosts().front().without_terminator())
          cast<PlacedOp>(post).setWorker(std::nullopt);
      op.moveBefore(&home, home.end());
    }
    for (auto [worker, home] : llvm::zip(workers, homes)) {
      SmallVector<Value> results;
      for (unsigned k : positions(worker, left))
        results.push_back(yield.getOperand(k));
      builder.setInsertionPointToEnd(home);
      builder.create<YieldOp>(yield.getLoc(), results);
    }
  }

  PipelineOp pipeline;
  const Layout &layout;
  OpBuilder builder;
  SmallVector<WorkerOp> workers;
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
  }
};

} // namespace
} // namespace chimera
