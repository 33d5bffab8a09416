//===- Synchronise.cpp - Starts and waits of all-reduces ------------------===//
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

/// The part of one worker in one all-reduce.
struct Part {
  uint32_t worker;
  SmallVector<unsigned> operands;       ///< indices of its contributions
  Operation *last;                      ///< last action that makes one of them;
                                        ///< null for squared norms
  SmallVector<AllReduceStartOp> starts; ///< one for each bucket
};

/// An all-reduce and the part of each worker.
struct Reduction {
  AllReduceOp op;
  SmallVector<Part, 2> parts;
  /// One entry for each contribution of one copy, in the order in which they
  /// are added: the worker that makes the contribution, and its key. The key is
  /// a pipeline (gradients, squared norms) or a micro-batch (losses).
  SmallVector<int32_t> workers, keys;
  Operation *last; ///< last action of all parts; null for squared norms, which
                   ///< no action makes
};

/// The action that makes `contribution`. If `contribution` is a piece of a
/// gradient, the action that makes the gradient. Null if no action makes it.
ActionOp makerOf(Value contribution) {
  if (auto split = contribution.getDefiningOp<SplitOp>())
    contribution = split.getGradient();
  return contribution.getDefiningOp<ActionOp>();
}

/// The order of the actions whose results are all-reduced. Use it to find the
/// last action of a worker that contributes to an all-reduce.
///
/// Except for losses, these actions are near the end of the block. So the
/// constructor walks from the end of the block, and stops when it has found the
/// last action of each worker in each all-reduce. Operation::isBeforeInBlock
/// would be slower: it numbers all ops of the block.
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
  /// The later of two actions. `a` may be null.
  Operation *later(Operation *a, Operation *b) const {
    return !a || isBefore(a, b) ? b : a;
  }

private:
  /// A number for each action that the walk has found, in order. All other
  /// actions are before these.
  DenseMap<Operation *, int64_t> order;
};

FailureOr<Reduction> reductionOf(AllReduceOp reduce,
                                 const ContributionOrder &order) {
  if (reduce.sumsLosses() && !reduce->use_empty())
    return reduce.emitOpError("expected no use of the sum of the losses");
  Reduction result{reduce, {}, {}, {}, nullptr};
  DenseMap<uint32_t, size_t> partOf; // index of each worker's part
  for (auto [index, contribution] :
       llvm::enumerate(reduce.getContributions())) {
    ActionOp action = makerOf(contribution);
    auto norm = contribution.getDefiningOp<SquaredNormOp>();
    std::optional<uint32_t> worker = action ? action.getWorker()
                                     : norm ? norm.getWorker()
                                            : std::nullopt;
    if (!worker)
      return reduce.emitOpError(
          "expected contributions made by actions that name their worker: run "
          "chimera-schedule first");
    result.workers.push_back(*worker);
    // A forward that covers several micro-batches has a loss for each of them.
    result.keys.push_back(
        norm ? norm.getPipeline()
        : reduce.sumsLosses()
            ? action.getMicroBatch() +
                  cast<OpResult>(contribution).getResultNumber()
            : action.getPipeline());
    auto [known, isNew] = partOf.try_emplace(*worker, result.parts.size());
    if (isNew)
      result.parts.push_back(Part{*worker, {}, nullptr, {}});
    Part &part = result.parts[known->second];
    part.operands.push_back(index);
    if (!action)
      continue;
    part.last = order.later(part.last, action);
    result.last = order.later(result.last, action);
  }
  return result;
}

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
    // If there is only one all-reduce, and it starts after all actions, the
    // order of the actions is not needed.
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
    // Sort the all-reduces by the position of the last action that contributes
    // to each. So all workers use the same order.
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
    auto sharesSum = [&](const Part &part) {
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
    for (Part &part : reduction.parts) {
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

  static IntegerAttr workerOf(OpBuilder &builder, const Part &part) {
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
    bool isNow = llvm::all_of(reduction.parts, [&](const Part &part) {
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
  /// A number for each set of members that share all-reduces.
  std::map<SmallVector<int32_t>, size_t> groups;
  /// The last start of each worker for each set of members.
  std::map<std::pair<uint32_t, size_t>, Operation *> newest;
};

/// The all-reduces of a section, in lists of adjacent ones. If `behindActions`,
/// all of them are after the last action. Then the walk from the end of the
/// block can stop at this action.
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
