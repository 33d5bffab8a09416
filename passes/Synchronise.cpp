//===- Synchronise.cpp - All-reduces, started and awaited -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/AllReduce.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_SYNCHRONISEPASS
#include "passes/Passes.h.inc"

namespace {

/// One worker's part in one all-reduce.
struct Part {
  uint32_t worker;
  SmallVector<unsigned> operands; ///< of the all-reduce
  Operation *last;                ///< of the actions that make them
  AllReduceStartOp start;
};

/// An all-reduce and its parts.
struct Reduction {
  AllReduceOp op;
  SmallVector<Part> parts;
  /// Of all contributions inside a copy, in the order of the fold: who gives
  /// it, and its pipeline (gradients) or micro-batch (losses).
  SmallVector<int32_t> workers, keys;
  Operation *last; ///< of the actions of all parts
};

bool sumsLosses(AllReduceOp reduce) {
  return isa<LossType>(reduce.getSummands().front().getType());
}

Operation *later(Operation *a, Operation *b) {
  return !a || a->isBeforeInBlock(b) ? b : a;
}

FailureOr<Reduction> reductionOf(AllReduceOp reduce) {
  if (sumsLosses(reduce) && !reduce->use_empty())
    return reduce.emitOpError("expected no use of the sum of the losses");
  Reduction result{reduce, {}, {}, {}, nullptr};
  for (auto [index, summand] : llvm::enumerate(reduce.getSummands())) {
    auto action = summand.getDefiningOp<ActionOp>();
    if (!action || !action.getWorker())
      return reduce.emitOpError("expected summands made by actions that name "
                                "their worker: run chimera-schedule first");
    uint32_t worker = *action.getWorker();
    result.workers.push_back(worker);
    // The losses of micro-batches that one forward covers are its results.
    result.keys.push_back(sumsLosses(reduce)
                              ? action.getMicroBatch() +
                                    cast<OpResult>(summand).getResultNumber()
                              : action.getPipeline());
    Part *part = llvm::find_if(
        result.parts, [&](const Part &p) { return p.worker == worker; });
    if (part == result.parts.end())
      part = &result.parts.emplace_back(Part{worker, {}, nullptr, {}});
    part->operands.push_back(index);
    part->last = later(part->last, action);
    result.last = later(result.last, action);
  }
  return result;
}

/// Makes the starts and waits of all-reduces that stand one behind another.
class Synchroniser {
public:
  /// `startsNow` says whether a worker starts an all-reduce right behind the
  /// last of its actions that contribute, which is given.
  using StartsNow = llvm::function_ref<bool(Operation *)>;

  LogicalResult run(ArrayRef<AllReduceOp> reduces, StartsNow startsNow) {
    SmallVector<Reduction> reductions;
    for (AllReduceOp reduce : reduces) {
      FailureOr<Reduction> reduction = reductionOf(reduce);
      if (failed(reduction))
        return failure();
      reductions.push_back(std::move(*reduction));
    }
    // One order for all workers: that in which the sums are complete.
    llvm::stable_sort(reductions, [](const Reduction &a, const Reduction &b) {
      return a.last->isBeforeInBlock(b.last);
    });
    for (Reduction &reduction : reductions)
      start(reduction, reduces.front(), startsNow);
    for (Reduction &reduction : reductions)
      wait(reduction);
    for (AllReduceOp reduce : reduces)
      reduce.erase();
    return success();
  }

private:
  void start(Reduction &reduction, Operation *anchor, StartsNow startsNow) {
    AllReduceOp reduce = reduction.op;
    OpBuilder builder(reduce);
    Type carried = ArrivingType::get(builder.getContext(),
                                     reduce.getSummands()[0].getType());
    SmallVector<int32_t> members(reduction.workers);
    llvm::sort(members);
    members.erase(llvm::unique(members), members.end());
    for (Part &part : reduction.parts) {
      Operation *&before = newest[{part.worker, members}];
      setPlace(builder, part, before, anchor, startsNow);
      SmallVector<Value> contributions;
      for (unsigned index : part.operands)
        contributions.push_back(reduce.getSummands()[index]);
      part.start = builder.create<AllReduceStartOp>(
          reduce.getLoc(), carried, contributions, reduce.getStageAttr(),
          reduce.getWidthAttr(),
          builder.getDenseI32ArrayAttr(reduction.workers),
          builder.getDenseI32ArrayAttr(reduction.keys),
          builder.getI32IntegerAttr(part.worker), DenseI32ArrayAttr());
      before = part.start;
    }
  }

  /// Behind the last contribution and what is sent of it, or at the anchor; but
  /// behind the start `before`, if any, of an earlier all-reduce with the same
  /// members.
  static void setPlace(OpBuilder &builder, const Part &part, Operation *before,
                       Operation *anchor, StartsNow startsNow) {
    builder.setInsertionPoint(anchor);
    if (!startsNow(part.last))
      return;
    Operation *behind = part.last;
    while (
        isa<PostReceiveOp, PostSendOp, AllReduceStartOp>(behind->getNextNode()))
      behind = behind->getNextNode();
    builder.setInsertionPointAfter(before ? later(before, behind) : behind);
  }

  /// Waits before the first use; the sum of the losses is the runtime's to
  /// report, no op uses it.
  static void wait(Reduction &reduction) {
    AllReduceOp reduce = reduction.op;
    OpBuilder builder(reduce->getBlock()->getTerminator());
    for (Part &part : reduction.parts) {
      Operation *first = nullptr;
      for (unsigned index : part.operands)
        if (!sumsLosses(reduce))
          for (Operation *user : reduce.getSums()[index].getUsers())
            if (!first || user->isBeforeInBlock(first))
              first = user;
      if (first)
        builder.setInsertionPoint(first);
      auto wait = builder.create<WaitOp>(
          reduce.getLoc(), reduce.getSums().front().getType(),
          part.start.getTransfer(), builder.getI32IntegerAttr(part.worker),
          DenseI32ArrayAttr());
      if (!sumsLosses(reduce))
        for (unsigned index : part.operands)
          reduce.getSums()[index].replaceAllUsesWith(wait.getValue());
    }
  }

  /// The last start of each worker, of all-reduces with the same members.
  std::map<std::pair<uint32_t, SmallVector<int32_t>>, Operation *> newest;
};

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

/// The actions of a step with a flush behind which their worker is idle for
/// some time before its last one.
FailureOr<llvm::DenseSet<Operation *>>
actionsBeforeIdleTime(PipelineOp pipeline, Block &step) {
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  if (failed(problem))
    return failure();
  FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
  if (failed(schedule))
    return failure();
  applyRecompute(pipeline, *schedule, *problem);
  if (failed(report(pipeline, "", schedule::verify(*problem, *schedule))))
    return failure();
  std::vector<std::vector<int64_t>> idle = schedule::idleBehind(
      *problem, *schedule, schedule::simulate(*problem, *schedule));
  std::vector<size_t> next(idle.size());
  llvm::DenseSet<Operation *> result;
  for (auto action : step.getOps<ActionOp>()) {
    uint32_t worker = *action.getWorker();
    if (idle[worker][next[worker]++] > 0)
      result.insert(action);
  }
  return result;
}

LogicalResult synchronise(PipelineOp pipeline) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  bool flushes = !stepsOverlap(*sections);
  AllReducePolicy policy = pipeline.getAllReduce();
  llvm::DenseSet<Operation *> beforeIdleTime;
  // Where steps overlap, the last backward of a stage is its worker's last
  // action of the section.
  if (policy == AllReducePolicy::EagerOpt && flushes) {
    FailureOr<llvm::DenseSet<Operation *>> found =
        actionsBeforeIdleTime(pipeline, sections->front().getBody().front());
    if (failed(found))
      return failure();
    beforeIdleTime = std::move(*found);
  }
  auto startsNow = [&](Operation *last) {
    return policy == AllReducePolicy::Eager || beforeIdleTime.contains(last);
  };
  for (SectionOp section : *sections)
    for (ArrayRef<AllReduceOp> run : runsOf(section.getBody().front(), flushes))
      if (failed(Synchroniser().run(run, startsNow)))
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
