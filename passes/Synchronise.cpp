//===- Synchronise.cpp - All-reduces, started and awaited -----------------===//
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

#define GEN_PASS_DEF_SYNCHRONISEPASS
#include "passes/Passes.h.inc"

namespace {

/// One worker's part in one all-reduce.
struct Part {
  uint32_t worker;
  SmallVector<unsigned> operands; ///< of the all-reduce
  AllReduceStartOp start;
};

/// The key of a summand in its fold: the pipeline of a gradient, the
/// micro-batch of a loss, one of those that its forward covers.
FailureOr<int32_t> keyOf(AllReduceOp reduce, Value summand) {
  auto action = summand.getDefiningOp<ActionOp>();
  if (!action || !action.getWorker())
    return reduce.emitOpError("expected summands made by actions that name "
                              "their worker: run chimera-schedule first");
  return isa<LossType>(summand.getType())
             ? action.getMicroBatch() +
                   cast<OpResult>(summand).getResultNumber()
             : action.getPipeline();
}

FailureOr<SmallVector<Part>> startAll(AllReduceOp reduce, OpBuilder &builder) {
  SmallVector<Part> parts;
  SmallVector<int32_t> workers, keys;
  for (auto [index, summand] : llvm::enumerate(reduce.getSummands())) {
    FailureOr<int32_t> key = keyOf(reduce, summand);
    if (failed(key))
      return failure();
    uint32_t worker = *summand.getDefiningOp<ActionOp>().getWorker();
    workers.push_back(worker);
    keys.push_back(*key);
    Part *part =
        llvm::find_if(parts, [&](const Part &p) { return p.worker == worker; });
    if (part == parts.end())
      part = &parts.emplace_back(Part{worker, {}, {}});
    part->operands.push_back(index);
  }
  Type carried = ArrivingType::get(builder.getContext(),
                                   reduce.getSummands().front().getType());
  for (Part &part : parts) {
    SmallVector<Value> contributions;
    for (unsigned index : part.operands)
      contributions.push_back(reduce.getSummands()[index]);
    part.start = builder.create<AllReduceStartOp>(
        reduce.getLoc(), carried, contributions, reduce.getStageAttr(),
        reduce.getWidthAttr(), builder.getDenseI32ArrayAttr(workers),
        builder.getDenseI32ArrayAttr(keys),
        builder.getI32IntegerAttr(part.worker), DenseI32ArrayAttr());
  }
  return parts;
}

void waitAll(AllReduceOp reduce, MutableArrayRef<Part> parts,
             OpBuilder &builder) {
  // The sum of the losses is the runtime's to report; no op uses it.
  bool used = !isa<LossType>(reduce.getSums().front().getType());
  for (Part &part : parts) {
    auto wait = builder.create<WaitOp>(
        reduce.getLoc(), reduce.getSums().front().getType(),
        part.start.getTransfer(), builder.getI32IntegerAttr(part.worker),
        DenseI32ArrayAttr());
    if (used)
      for (unsigned index : part.operands)
        reduce.getSums()[index].replaceAllUsesWith(wait.getValue());
  }
}

/// Starts all-reduces that stand one behind another, then waits for them.
LogicalResult synchronise(ArrayRef<AllReduceOp> reduces) {
  OpBuilder builder(reduces.front());
  SmallVector<SmallVector<Part>> parts;
  for (AllReduceOp reduce : reduces) {
    if (isa<LossType>(reduce.getSummands().front().getType()) &&
        !reduce->use_empty())
      return reduce.emitOpError("expected no use of the sum of the losses");
    FailureOr<SmallVector<Part>> started = startAll(reduce, builder);
    if (failed(started))
      return failure();
    parts.push_back(*started);
  }
  for (auto [reduce, started] : llvm::zip(reduces, parts))
    waitAll(reduce, started, builder);
  for (AllReduceOp reduce : reduces)
    reduce.erase();
  return success();
}

/// The all-reduces of a section, in runs that stand one behind another. With a
/// flush they stand behind all actions, where a walk from the end is short.
SmallVector<SmallVector<AllReduceOp>> runsOf(Block &block, bool behindActions) {
  SmallVector<SmallVector<AllReduceOp>> runs;
  for (Operation &op : llvm::reverse(block)) {
    if (behindActions && isa<ActionOp>(op))
      break;
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (!reduce)
      continue;
    if (!isa_and_nonnull<AllReduceOp>(op.getNextNode()))
      runs.emplace_back();
    runs.back().push_back(reduce);
  }
  for (SmallVector<AllReduceOp> &run : runs)
    std::reverse(run.begin(), run.end());
  return runs;
}

LogicalResult synchronise(PipelineOp pipeline) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  for (SectionOp section : *sections)
    for (ArrayRef<AllReduceOp> run :
         runsOf(section.getBody().front(), !stepsOverlap(*sections)))
      if (failed(synchronise(run)))
        return failure();
  return success();
}

struct Synchronise : impl::SynchronisePassBase<Synchronise> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(synchronise(pipeline)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace chimera
