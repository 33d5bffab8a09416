//===- Synchronise.cpp - Starts and waits of all-reduces ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/AllReduce.h"
#include "passes/Passes.h"
#include "passes/communicate/Reductions.h"
#include "passes/schedule/ActionTimes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_SYNCHRONISEPASS
#include "passes/Passes.h.inc"

namespace {

/// Makes the starts and waits of all-reduces that are adjacent in the block.
class Synchroniser {
public:
  /// Gradients are cut into buckets of at most `bucketBytes`. If `bucketBytes`
  /// is 0, they are not cut. If `times` is given, all members of an all-reduce
  /// (the workers that take part) start it at the same place of the global
  /// order.
  Synchroniser(AllReducePolicy policy, int64_t bucketBytes,
               const ActionTimes *times)
      : policy(policy), bucketBytes(bucketBytes), times(times) {}

  /// Returns true if a worker starts an all-reduce right after its last action
  /// that contributes to it. The argument is this action.
  using StartsNow = llvm::function_ref<bool(Operation *)>;

  LogicalResult run(ArrayRef<AllReduceOp> reduces, StartsNow startsNow) {
    for (AllReduceOp reduce : reduces)
      if (failed(checkBuckets(reduce)))
        return failure();
    // If there is only one all-reduce, and it starts after all actions, the
    // order of the actions is not needed.
    FailureOr<std::vector<Reduction>> found = reductionsOf(
        reduces,
        /*needsOrder=*/reduces.size() > 1 || policy != AllReducePolicy::Lazy);
    if (failed(found))
      return failure();
    std::vector<Reduction> &reductions = *found;
    for (Reduction &reduction : reductions)
      start(reduction, reduces.front(), startsNow);
    for (Reduction &reduction : reductions)
      wait(reduction);
    for (AllReduceOp reduce : reduces)
      reduce.erase();
    return success();
  }

private:
  LogicalResult checkBuckets(AllReduceOp reduce) const {
    constexpr int64_t kMost = UINT16_MAX;
    if (!reduce.sumsGradients())
      return success();
    int64_t bytes =
        cast<SizedType>(reduce.getContributions().front().getType()).getBytes();
    if (schedule::bucketsOf(bytes, bucketBytes).count <= kMost)
      return success();
    return reduce.emitOpError("expected at most ")
           << kMost << " buckets of a gradient, got more of " << bytes
           << " bytes: raise bucket_bytes";
  }

  /// The types of the buckets of each contribution. If contributions are not
  /// cut, this is a single type. A worker with several replicas of a stage has
  /// one sum for all of them. Such a sum is not cut.
  SmallVector<Type> bucketsOf(const Reduction &reduction) const {
    AllReduceOp reduce = reduction.op;
    Type whole = reduce.getContributions().front().getType();
    auto sharesSum = [&](const ReductionPart &part) {
      return part.operands.size() > 1 && !reduce.getTied();
    };
    if (!reduce.sumsGradients() || llvm::any_of(reduction.parts, sharesSum))
      return {whole};
    auto [count, each, last] =
        schedule::bucketsOf(cast<SizedType>(whole).getBytes(), bucketBytes);
    SmallVector<Type> buckets(
        count, WeightGradientType::get(whole.getContext(), each));
    buckets.back() = WeightGradientType::get(whole.getContext(), last);
    return buckets;
  }

  void start(Reduction &reduction, Operation *anchor, StartsNow startsNow) {
    AllReduceOp reduce = reduction.op;
    OpBuilder builder(reduce);
    SmallVector<Type> buckets = bucketsOf(reduction);
    SmallVector<int32_t> members(reduction.workers);
    llvm::sort(members);
    members.erase(llvm::unique(members), members.end());
    // The starts on all members list all contributions. This list may be long,
    // so make it only once.
    size_t group =
        groups.try_emplace(std::move(members), groups.size()).first->second;
    DenseI32ArrayAttr workers = builder.getDenseI32ArrayAttr(reduction.workers);
    DenseI32ArrayAttr keys = builder.getDenseI32ArrayAttr(reduction.keys);
    if (times)
      builder.setInsertionPoint(togetherBefore(reduction, anchor, startsNow));
    for (ReductionPart &part : reduction.parts) {
      Operation *&previousStart = newest[{part.worker, group}];
      if (!times)
        setInsertionPointAfter(
            builder, part.last && startsNow(part.last) ? part.last : nullptr,
            previousStart, anchor);
      SmallVector<SmallVector<Value>> contributions(buckets.size());
      for (unsigned index : part.operands) {
        ensureSplitBefore(builder, reduce.getContributions()[index]);
        SmallVector<Value> pieces = {reduce.getContributions()[index]};
        if (buckets.size() > 1)
          pieces =
              builder
                  .create<SplitOp>(reduce.getLoc(), buckets, pieces[0],
                                   pipelineOf(builder, reduction, index),
                                   stageOf(builder, reduction, index),
                                   workerOf(builder, part), DenseI32ArrayAttr())
                  .getPieces();
        for (auto [k, piece] : llvm::enumerate(pieces))
          contributions[k].push_back(piece);
      }
      for (auto [k, type] : llvm::enumerate(buckets)) {
        IntegerAttr bucket, count;
        if (buckets.size() > 1) {
          bucket = builder.getI32IntegerAttr(k);
          count = builder.getI32IntegerAttr(buckets.size());
        }
        part.starts.push_back(builder.create<AllReduceStartOp>(
            reduce.getLoc(), ArrivingType::get(builder.getContext(), type),
            contributions[k], reduce.getStageAttr(), reduce.getTiedAttr(),
            bucket, count, reduce.getWidthAttr(), workers, keys,
            workerOf(builder, part), DenseI32ArrayAttr()));
      }
      previousStart = part.starts.back();
    }
  }

  static IntegerAttr workerOf(OpBuilder &builder, const ReductionPart &part) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(part.worker));
  }

  static IntegerAttr pipelineOf(OpBuilder &builder, const Reduction &reduction,
                                unsigned index) {
    return builder.getI32IntegerAttr(reduction.keys[index]);
  }
  static IntegerAttr stageOf(OpBuilder &builder, const Reduction &reduction,
                             unsigned index) {
    return builder.getI32IntegerAttr(
        AllReduceOp(reduction.op).getStageOf(index));
  }

  /// If a split makes the contribution, ensures that the split is before the
  /// insertion point. Clones the split and does not move it, because a move
  /// would make MLIR number all ops of the block again.
  static void ensureSplitBefore(OpBuilder &builder, Value contribution) {
    Operation *split = contribution.getDefiningOp<SplitOp>();
    if (!split || split->isBeforeInBlock(&*builder.getInsertionPoint()))
      return;
    split->replaceAllUsesWith(builder.clone(*split));
    split->erase();
  }

  /// Sets the insertion point for a start. If `action` is null, this is the
  /// anchor. Otherwise it is after `action` and after the posts, splits and
  /// starts that follow `action`. If `previousStart`, the previous start with
  /// the same members, is later, the insertion point is after `previousStart`.
  static void setInsertionPointAfter(OpBuilder &builder, Operation *action,
                                     Operation *previousStart,
                                     Operation *anchor) {
    builder.setInsertionPoint(anchor);
    if (!action)
      return;
    while (isa<PostReceiveOp, PostSendOp, SplitOp, AllReduceStartOp>(
        action->getNextNode()))
      action = action->getNextNode();
    if (previousStart && action->isBeforeInBlock(previousStart))
      action = previousStart;
    builder.setInsertionPointAfter(action);
  }

  /// The op before which all members start. If the policy lets every member
  /// start as soon as its part is complete, this is the place where the last
  /// contribution is complete. Otherwise it is the anchor.
  Operation *togetherBefore(const Reduction &reduction, Operation *anchor,
                            StartsNow startsNow) const {
    bool isNow = llvm::all_of(reduction.parts, [&](const ReductionPart &part) {
      return part.last && startsNow(part.last);
    });
    if (!isNow)
      return anchor;
    auto last = cast<ActionOp>(reduction.last);
    Operation *place =
        times->insertionPointAt(last, times->endOf(last), anchor);
    // Skip splits: `ensureSplitBefore` may replace a split by a clone, so a
    // split cannot be an insertion point.
    while (isa<SplitOp>(place))
      place = place->getNextNode();
    return place;
  }

  /// Makes the waits for all buckets before the first use of the sum. No op
  /// uses the sum of the losses, because the runtime reports this sum. So the
  /// waits for losses are at the end of the block.
  static void wait(Reduction &reduction) {
    AllReduceOp reduce = reduction.op;
    OpBuilder builder(reduce.getContext());
    for (ReductionPart &part : reduction.parts) {
      Operation *first = nullptr;
      if (!reduce.sumsLosses())
        for (unsigned index : part.operands)
          for (Operation *user : reduce.getSums()[index].getUsers())
            if (!first || user->isBeforeInBlock(first))
              first = user;
      builder.setInsertionPoint(first ? first
                                      : reduce->getBlock()->getTerminator());
      SmallVector<Value> sums;
      for (AllReduceStartOp start : part.starts)
        sums.push_back(
            builder
                .create<WaitOp>(reduce.getLoc(),
                                start.getTransfer().getType().getValue(),
                                start.getTransfer(), workerOf(builder, part),
                                DenseI32ArrayAttr())
                .getValue());
      if (reduce.sumsLosses())
        continue;
      // Join the first contribution last. Its join reuses the buffers of the
      // sums, so the joins of the other contributions must read these buffers
      // earlier.
      for (size_t k = part.operands.size(); k-- > 0;)
        reduce.getSums()[part.operands[k]].replaceAllUsesWith(
            sumFor(builder, reduction, part, k, sums));
    }
  }

  /// The sum for the k-th contribution of a part, joined from `sums`, which has
  /// the sum of each bucket. The sums are in the buffer of the first
  /// contribution. The sums of tied parameters are also copied to the buffers
  /// of the other contributions.
  static Value sumFor(OpBuilder &builder, const Reduction &reduction,
                      const ReductionPart &part, size_t k,
                      ArrayRef<Value> sums) {
    AllReduceOp reduce = reduction.op;
    unsigned index = part.operands[k];
    IntegerAttr pipeline = pipelineOf(builder, reduction, index);
    IntegerAttr stage = stageOf(builder, reduction, index);
    SmallVector<Value> own(sums);
    if (k > 0 && reduce.getTied())
      for (auto [sum, start] : llvm::zip(own, part.starts))
        sum = builder.create<OverwriteOp>(
            reduce.getLoc(), sum.getType(),
            AllReduceStartOp(start).getContributions()[k], sum, pipeline, stage,
            workerOf(builder, part), DenseI32ArrayAttr());
    if (own.size() == 1)
      return own.front();
    return builder.create<JoinOp>(
        reduce.getLoc(), reduce.getContributions().front().getType(), own,
        pipeline, stage, workerOf(builder, part), DenseI32ArrayAttr());
  }

  const AllReducePolicy policy;
  const int64_t bucketBytes;
  const ActionTimes *const times;
  /// A number for each set of members that share all-reduces.
  std::map<SmallVector<int32_t>, size_t> groups;
  /// The last start of each worker for each set of members.
  std::map<std::pair<uint32_t, size_t>, Operation *> newest;
};

/// The all-reduces of a section, in lists of adjacent ones. If
/// `areAfterActions`, all of them are after the last action. Then the walk from
/// the end of the block can stop at this action.
SmallVector<SmallVector<AllReduceOp>> runsOf(Block &block,
                                             bool areAfterActions) {
  SmallVector<SmallVector<AllReduceOp>> runs;
  for (Operation &op : llvm::reverse(block)) {
    if (areAfterActions && isa<ActionOp>(op))
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

/// The actions of a step with a flush after which their worker is idle at some
/// time before its last action.
FailureOr<llvm::DenseSet<Operation *>>
actionsBeforeIdleTime(Block &step, ScheduleAnalysis &analysis) {
  const ScheduledProblem *of = analysis.verified();
  if (!of)
    return failure();
  std::vector<std::vector<int64_t>> idle =
      schedule::idleAfter(of->schedule, analysis.timing());
  std::vector<size_t> next(idle.size());
  llvm::DenseSet<Operation *> result;
  for (auto action : step.getOps<ActionOp>()) {
    uint32_t worker = *action.getWorker();
    if (idle[worker][next[worker]++] > 0)
      result.insert(action);
  }
  return result;
}

LogicalResult synchronise(PipelineOp pipeline, ScheduleAnalysis &analysis,
                          bool isOneStream) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  bool flushes = !stepsOverlap(*sections);
  AllReducePolicy policy = pipeline.getAllReduce();
  llvm::DenseSet<Operation *> beforeIdleTime;
  // If steps overlap, eager_opt is the same as lazy. If a worker has one stage,
  // nothing is lost: the stage's last backward is also the worker's last action
  // of the section. A worker with several stages could start all-reduces
  // earlier, but eager_opt does not do so.
  if (policy == AllReducePolicy::EagerOpt && flushes) {
    FailureOr<llvm::DenseSet<Operation *>> found =
        actionsBeforeIdleTime(sections->front().getBody().front(), analysis);
    if (failed(found))
      return failure();
    beforeIdleTime = std::move(*found);
  }
  auto startsNow = [&](Operation *last) {
    return policy == AllReducePolicy::Eager || beforeIdleTime.contains(last);
  };
  // With the policy lazy, all members start at the same place anyway: after all
  // actions. So no times are needed.
  std::optional<ActionTimes> times;
  if (isOneStream && policy != AllReducePolicy::Lazy) {
    FailureOr<ActionTimes> found = ActionTimes::of(pipeline, analysis);
    if (failed(found))
      return failure();
    times = std::move(*found);
  }
  int64_t bucketBytes = pipeline.getBucketBytes().value_or(0);
  for (SectionOp section : *sections)
    for (ArrayRef<AllReduceOp> run : runsOf(section.getBody().front(), flushes))
      if (failed(Synchroniser(policy, bucketBytes, times ? &*times : nullptr)
                     .run(run, startsNow)))
        return failure();
  return success();
}

struct Synchronise : impl::SynchronisePassBase<Synchronise> {
  using SynchronisePassBase::SynchronisePassBase;

  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(synchronise(
              pipeline, getChildAnalysis<ScheduleAnalysis>(pipeline),
              messages == program::MessageModel::StreamPerDevice)))
        return signalPassFailure();
    markAnalysesPreserved<ScheduleAnalysis>();
  }
};

} // namespace
} // namespace chimera
