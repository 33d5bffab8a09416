//===- Synchronise.cpp - All-reduces, started and awaited -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/AllReduce.h"
#include "passes/ActionTimes.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <set>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_SYNCHRONISEPASS
#include "passes/Passes.h.inc"

namespace {

/// One worker's part in one all-reduce.
struct Part {
  uint32_t worker;
  SmallVector<unsigned> operands;       ///< of the all-reduce
  Operation *last;                      ///< of the actions that make them
  SmallVector<AllReduceStartOp> starts; ///< one for each bucket
};

/// An all-reduce and its parts.
struct Reduction {
  AllReduceOp op;
  SmallVector<Part, 2> parts;
  /// Of all contributions inside a copy, in the order of the fold: who gives
  /// it, and its pipeline (gradients) or micro-batch (losses).
  SmallVector<int32_t> workers, keys;
  Operation *last; ///< of the actions of all parts
};

/// The action that makes `contribution`, or what it is a piece of; null if
/// none.
ActionOp makerOf(Value contribution) {
  if (auto split = contribution.getDefiningOp<SplitOp>())
    contribution = split.getGradient();
  return contribution.getDefiningOp<ActionOp>();
}

/// The order of the actions whose results all-reduces sum, as far as it takes
/// to know each worker's last in each all-reduce. The block would number all of
/// its ops, of which these are among the last, but for the losses.
class ContributionOrder {
public:
  explicit ContributionOrder(ArrayRef<AllReduceOp> reduces) {
    DenseMap<Operation *, SmallVector<unsigned, 2>> reducesOf;
    std::set<std::pair<unsigned, std::optional<uint32_t>>> missing;
    for (unsigned index = 0; index < reduces.size(); ++index)
      for (Value contribution : AllReduceOp(reduces[index]).getContributions())
        if (ActionOp action = makerOf(contribution)) {
          reducesOf[action].push_back(index);
          missing.insert({index, action.getWorker()});
        }
    Operation *op = reduces.empty() ? nullptr : reduces.front();
    for (int64_t next = INT64_MAX; op && !missing.empty();
         op = op->getPrevNode())
      if (auto found = reducesOf.find(op); found != reducesOf.end()) {
        order[op] = next--;
        for (unsigned index : found->second)
          missing.erase({index, cast<ActionOp>(op).getWorker()});
      }
  }

  bool isBefore(Operation *a, Operation *b) const {
    return order.lookup(a) < order.lookup(b);
  }
  /// Of two, of which the first may be null.
  Operation *later(Operation *a, Operation *b) const {
    return !a || isBefore(a, b) ? b : a;
  }

private:
  DenseMap<Operation *, int64_t> order; ///< absent before all others
};

FailureOr<Reduction> reductionOf(AllReduceOp reduce,
                                 const ContributionOrder &order) {
  if (reduce.sumsLosses() && !reduce->use_empty())
    return reduce.emitOpError("expected no use of the sum of the losses");
  Reduction result{reduce, {}, {}, {}, nullptr};
  DenseMap<uint32_t, size_t> partOf; // of each worker
  for (auto [index, contribution] :
       llvm::enumerate(reduce.getContributions())) {
    ActionOp action = makerOf(contribution);
    if (!action || !action.getWorker())
      return reduce.emitOpError(
          "expected contributions made by actions that name their worker: run "
          "chimera-schedule first");
    uint32_t worker = *action.getWorker();
    result.workers.push_back(worker);
    // The losses of micro-batches that one forward covers are its results.
    result.keys.push_back(
        reduce.sumsLosses() ? action.getMicroBatch() +
                                  cast<OpResult>(contribution).getResultNumber()
                            : action.getPipeline());
    auto [known, isNew] = partOf.try_emplace(worker, result.parts.size());
    if (isNew)
      result.parts.push_back(Part{worker, {}, nullptr, {}});
    Part &part = result.parts[known->second];
    part.operands.push_back(index);
    part.last = order.later(part.last, action);
    result.last = order.later(result.last, action);
  }
  return result;
}

/// Makes the starts and waits of all-reduces that stand one behind another.
class Synchroniser {
public:
  /// Gradients are cut into buckets of at most `bucketBytes`, whole if 0. With
  /// `times` all members start an all-reduce in one place of the global order.
  Synchroniser(AllReducePolicy policy, int64_t bucketBytes,
               const ActionTimes *times)
      : policy(policy), bucketBytes(bucketBytes), times(times) {}

  /// `startsNow` says whether a worker starts an all-reduce right behind the
  /// last of its actions that contribute, which is given.
  using StartsNow = llvm::function_ref<bool(Operation *)>;

  LogicalResult run(ArrayRef<AllReduceOp> reduces, StartsNow startsNow) {
    // One that is started behind everything goes into one place, whoever
    // contributes last.
    const bool areOrdered =
        reduces.size() > 1 || policy != AllReducePolicy::Lazy;
    ContributionOrder order(areOrdered ? reduces : ArrayRef<AllReduceOp>());
    std::vector<Reduction> reductions;
    for (AllReduceOp reduce : reduces) {
      FailureOr<Reduction> reduction = reductionOf(reduce, order);
      if (failed(reduction))
        return failure();
      if (failed(checkBuckets(reduce)))
        return failure();
      reductions.push_back(std::move(*reduction));
    }
    // One order for all workers: that in which the sums are complete.
    llvm::stable_sort(reductions, [&](const Reduction &a, const Reduction &b) {
      return order.isBefore(a.last, b.last);
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
  LogicalResult checkBuckets(AllReduceOp reduce) const {
    constexpr int64_t kMost = UINT16_MAX;
    if (reduce.sumsLosses())
      return success();
    int64_t bytes =
        cast<SizedType>(reduce.getContributions().front().getType()).getBytes();
    if (schedule::bucketsOf(bytes, bucketBytes).count <= kMost)
      return success();
    return reduce.emitOpError("expected at most ")
           << kMost << " buckets of a gradient, got more of " << bytes
           << " bytes: raise bucket_bytes";
  }

  /// The types of the buckets of each contribution; one where it is reduced
  /// whole. Replicas of a stage on one worker share the whole sum.
  SmallVector<Type> bucketsOf(const Reduction &reduction) const {
    AllReduceOp reduce = reduction.op;
    Type whole = reduce.getContributions().front().getType();
    auto sharesSum = [&](const Part &part) {
      return part.operands.size() > 1 && !reduce.getTied();
    };
    if (reduce.sumsLosses() || llvm::any_of(reduction.parts, sharesSum))
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
    // Every member lists all contributions: made once, as there may be many.
    size_t group =
        groups.try_emplace(std::move(members), groups.size()).first->second;
    DenseI32ArrayAttr workers = builder.getDenseI32ArrayAttr(reduction.workers);
    DenseI32ArrayAttr keys = builder.getDenseI32ArrayAttr(reduction.keys);
    if (times)
      builder.setInsertionPoint(togetherBefore(reduction, anchor, startsNow));
    for (Part &part : reduction.parts) {
      Operation *&before = newest[{part.worker, group}];
      if (!times)
        setPlace(builder, startsNow(part.last) ? part.last : nullptr, before,
                 anchor);
      SmallVector<SmallVector<Value>> contributions(buckets.size());
      for (unsigned index : part.operands) {
        bring(builder, reduce.getContributions()[index]);
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
      before = part.starts.back();
    }
  }

  static IntegerAttr workerOf(OpBuilder &builder, const Part &part) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(part.worker));
  }

  /// Of a contribution of gradients.
  static IntegerAttr pipelineOf(OpBuilder &builder, const Reduction &reduction,
                                unsigned index) {
    return builder.getI32IntegerAttr(reduction.keys[index]);
  }
  static IntegerAttr stageOf(OpBuilder &builder, const Reduction &reduction,
                             unsigned index) {
    return builder.getI32IntegerAttr(
        AllReduceOp(reduction.op).getStageOf(index));
  }

  /// Sees to it that the split that makes a contribution, if one does, stands
  /// before where ops are made. It is made anew: a move would have all ops of
  /// the block numbered again.
  static void bring(OpBuilder &builder, Value contribution) {
    Operation *split = contribution.getDefiningOp<SplitOp>();
    if (!split || split->isBeforeInBlock(&*builder.getInsertionPoint()))
      return;
    split->replaceAllUsesWith(builder.clone(*split));
    split->erase();
  }

  /// Behind the action `behind` and what is sent of it, or at the anchor where
  /// there is none; but behind the start `before`, if any, of an earlier
  /// all-reduce with the same members.
  static void setPlace(OpBuilder &builder, Operation *behind, Operation *before,
                       Operation *anchor) {
    builder.setInsertionPoint(anchor);
    if (!behind)
      return;
    while (isa<PostReceiveOp, PostSendOp, SplitOp, AllReduceStartOp>(
        behind->getNextNode()))
      behind = behind->getNextNode();
    if (before && behind->isBeforeInBlock(before))
      behind = before;
    builder.setInsertionPointAfter(behind);
  }

  /// Before which op all members start: where the last contribution is there,
  /// if every member would start then, or at the anchor.
  Operation *togetherBefore(const Reduction &reduction, Operation *anchor,
                            StartsNow startsNow) const {
    bool isNow = llvm::all_of(reduction.parts, [&](const Part &part) {
      return startsNow(part.last);
    });
    if (!isNow)
      return anchor;
    auto last = cast<ActionOp>(reduction.last);
    Operation *place = times->placeBehind(last, times->endOf(last), anchor);
    // Splits of the contributions may be replaced by clones, so a split cannot
    // mark the place.
    while (isa<SplitOp>(place))
      place = place->getNextNode();
    return place;
  }

  /// Waits before the first use, bucket by bucket; the sum of the losses is the
  /// runtime's to report, no op uses it.
  static void wait(Reduction &reduction) {
    AllReduceOp reduce = reduction.op;
    OpBuilder builder(reduce.getContext());
    for (Part &part : reduction.parts) {
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
      // Joined last, the first leaves the sums to the others until then.
      for (size_t k = part.operands.size(); k-- > 0;)
        reduce.getSums()[part.operands[k]].replaceAllUsesWith(
            sumFor(builder, reduction, part, k, sums));
    }
  }

  /// What the k-th contribution of a part becomes, the buckets' `sums` in one.
  /// They lie in the place of the first; those of tied parameters go to that of
  /// the others too.
  static Value sumFor(OpBuilder &builder, const Reduction &reduction,
                      const Part &part, size_t k, ArrayRef<Value> sums) {
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
  /// A number for each group of members.
  std::map<SmallVector<int32_t>, size_t> groups;
  /// The last start of each worker in each group.
  std::map<std::pair<uint32_t, size_t>, Operation *> newest;
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
actionsBeforeIdleTime(Block &step, ScheduleAnalysis &analysis) {
  const ScheduledProblem *of = analysis.verified();
  if (!of)
    return failure();
  std::vector<std::vector<int64_t>> idle =
      schedule::idleBehind(of->schedule, analysis.timing());
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
  // Where steps overlap, the last backward of a worker's only stage is its last
  // action of the section; with several stages eager_opt is lazy all the same.
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
  // Behind all actions all members start in one place anyway.
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
