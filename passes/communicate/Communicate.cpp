//===- Communicate.cpp - Posts and waits ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Prefetch.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/ActionTimes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <queue>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_COMMUNICATEPASS
#include "passes/Passes.h.inc"

namespace {

/// The pairs of a block: actions that their worker runs as one.
class Pairs {
public:
  void add(ActionOp first, ActionOp second) {
    firsts[second] = first;
    seconds[first] = second;
  }
  /// The first or the last action of the pair of `op`, or `op` itself if it is
  /// in no pair.
  Operation *firstOf(Operation *op) const { return find(firsts, op); }
  Operation *lastOf(Operation *op) const { return find(seconds, op); }

private:
  using Partners = DenseMap<Operation *, Operation *>;

  static Operation *find(const Partners &partners, Operation *op) {
    auto found = partners.find(op);
    return found == partners.end() ? op : found->second;
  }

  Partners firsts, seconds;
};

/// Makes the posts and waits of a step. MLIR looks up attributes and types each
/// time that they are created. A step has very many ops but few different
/// attributes and types. So this class creates each of them only once.
class Poster {
public:
  Poster(MLIRContext *context, const Pairs &pairs)
      : builder(context), pairs(pairs),
        noAttributes(builder.getDictionaryAttr({})),
        sending(SendingType::get(context)),
        sendName(nameOf<PostSendOp>(context)),
        receiveName(nameOf<PostReceiveOp>(context)),
        waitName(nameOf<WaitOp>(context)) {}

  /// Sends `value`, a result of `producer`, to `worker`. Inserts the posts
  /// right after the producer: first the post of the receive, then the post of
  /// the send. Inserts the wait for the receive before `awaiting`, and the wait
  /// for the send after `awaiting`. If `awaiting` ends the section, both waits
  /// are before it. A pair counts as one action: the waits for its messages are
  /// before its first action, and the posts of its results after its last one.
  /// Returns the value that arrives.
  Value send(ActionOp producer, Value value, uint32_t worker,
             Operation *awaiting) {
    uint32_t own = *producer.getWorker();
    IntegerAttr from = number(own);
    IntegerAttr to = number(worker);
    Location loc = producer.getLoc();
    PostSendOp::Properties sent;
    sent.pipeline = number(producer.getPipeline());
    sent.stage = number(producer.getStage());
    sent.micro_batch = number(producer.getMicroBatch());
    if (uint32_t count = producer.getCount(); count > 1)
      sent.count = number(count);
    if (uint32_t parts = producer.getParts(); parts > 1) {
      sent.part = number(producer.getPart());
      sent.parts = number(parts);
    }
    sent.worker = from;
    sent.peer = to;
    PostReceiveOp::Properties received;
    received.pipeline = sent.pipeline;
    received.stage = sent.stage;
    received.micro_batch = sent.micro_batch;
    received.count = sent.count;
    received.part = sent.part;
    received.parts = sent.parts;
    received.worker = to;
    received.peer = from;

    builder.setInsertionPointAfter(pairs.lastOf(producer));
    Value receive = make(receiveName, loc, arriving(value.getType()),
                         ValueRange(), received)
                        ->getResult(0);
    Value send = make(sendName, loc, sending, value, sent)->getResult(0);

    WaitOp::Properties waited;
    waited.worker = to;
    builder.setInsertionPoint(placeOfWait(awaiting));
    Value arrived =
        make(waitName, loc, value.getType(), receive, waited)->getResult(0);
    // Insert the wait after the posts of the results of `awaiting`. Workers are
    // processed in order. So if `worker` is lower than the sender, these posts
    // exist already, and the loop skips them. Otherwise the posts are inserted
    // later, directly after `awaiting` and so before this wait.
    Operation *last = pairs.lastOf(awaiting);
    while (worker < own &&
           isa_and_nonnull<PostReceiveOp, PostSendOp>(last->getNextNode()))
      last = last->getNextNode();
    if (!isa<YieldOp>(awaiting))
      builder.setInsertionPointAfter(last);
    waited.worker = from;
    make(waitName, loc, TypeRange(), send, waited);
    return arrived;
  }

private:
  /// The op before which to wait for a message for `awaiting`. A pair first
  /// waits for the message of its first action.
  Operation *placeOfWait(Operation *awaiting) const {
    Operation *place = pairs.firstOf(awaiting), *last = pairs.lastOf(awaiting);
    while (awaiting != last && isWaitOf(last, place->getPrevNode()))
      place = place->getPrevNode();
    return place;
  }

  /// Whether `op` waits for a message for `user`.
  static bool isWaitOf(Operation *user, Operation *op) {
    return isa_and_nonnull<WaitOp>(op) &&
           llvm::is_contained(op->getUsers(), user);
  }

  template <typename Op> static OperationName nameOf(MLIRContext *context) {
    return OperationName(Op::getOperationName(), context);
  }

  /// Makes an op with the name `name`. OpBuilder::create would look up the name
  /// and build an OperationState each time.
  template <typename Properties>
  Operation *make(OperationName name, Location loc, TypeRange results,
                  ValueRange operands, Properties &properties) {
    return builder.insert(Operation::create(
        loc, name, results, operands, noAttributes,
        OpaqueProperties(&properties), /*successors=*/{}, /*numRegions=*/0));
  }

  IntegerAttr number(uint32_t n) {
    if (n >= numbers.size())
      numbers.resize(n + 1);
    if (!numbers[n])
      numbers[n] = builder.getI32IntegerAttr(n);
    return numbers[n];
  }

  Type arriving(Type value) {
    Type &type = arrivingTypes[value];
    if (!type)
      type = ArrivingType::get(builder.getContext(), value);
    return type;
  }

  OpBuilder builder;
  const Pairs &pairs;
  DictionaryAttr noAttributes;
  Type sending;
  OperationName sendName, receiveName, waitName;
  std::vector<IntegerAttr> numbers;
  DenseMap<Type, Type> arrivingTypes;
};

/// If recomputation is fused, the recompute of a backward waits for the
/// gradient, and the backward does not. Returns the recompute for the backward
/// `consumer`. Returns null if no recompute waits for `value`.
Operation *fusedRecompute(PipelineOp pipeline, ActionOp producer, Value value,
                          Operation *consumer) {
  if (!pipeline.getRecomputeFused() || !isa<GradientType>(value.getType()))
    return nullptr;
  auto recompute = consumer->getOperand(0).getDefiningOp<RecomputeOp>();
  return recompute && producer->isBeforeInBlock(recompute)
             ? recompute.getOperation()
             : nullptr;
}

/// The worker that uses a value. If the user is an action, this is the worker
/// of the action. If the section yields the value, it is the worker that has
/// the replica to which the value belongs. None if the user has no worker yet.
std::optional<uint32_t> workerOf(OpOperand &use, ArrayRef<uint32_t> owners) {
  if (auto action = dyn_cast<ActionOp>(use.getOwner()))
    return action.getWorker();
  if (isa<YieldOp>(use.getOwner()) && !owners.empty())
    return owners[use.getOperandNumber()];
  return std::nullopt;
}

/// Sends the results of `producer` to the workers that use them, once to each
/// worker. If another worker needs a loop-carried value, it receives the value
/// at the end of the section.
LogicalResult sendResults(PipelineOp pipeline, ActionOp producer,
                          ArrayRef<uint32_t> owners, Poster &poster) {
  for (Value value : producer->getResults()) {
    SmallVector<OpOperand *, 4> uses;
    for (OpOperand &use : value.getUses()) {
      // Skip a use by an all-reduce. It has no worker yet, because
      // chimera-synchronise splits it later.
      std::optional<uint32_t> worker = workerOf(use, owners);
      if (!worker || worker == producer.getWorker())
        continue;
      if (!isa<ActivationType, GradientType>(value.getType()))
        return producer.emitOpError("expected only activations and gradients "
                                    "used on another worker, got ")
               << value.getType() << " on worker " << *worker;
      uses.push_back(&use);
    }
    if (uses.size() > 1)
      llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
        return a->getOwner()->isBeforeInBlock(b->getOwner());
      });
    while (!uses.empty()) {
      uint32_t worker = *workerOf(*uses.front(), owners);
      Operation *first = uses.front()->getOwner();
      Operation *early = fusedRecompute(pipeline, producer, value, first);
      Value arrived =
          poster.send(producer, value, worker, early ? early : first);
      llvm::erase_if(uses, [&](OpOperand *use) {
        if (workerOf(*use, owners) != worker)
          return false;
        use->set(arrived);
        return true;
      });
    }
  }
  return success();
}

LogicalResult communicate(PipelineOp pipeline, Block &block,
                          ArrayRef<uint32_t> owners, Pairs &pairs,
                          Poster &poster) {
  // Process worker by worker, so that the posts of one worker are adjacent in
  // memory.
  std::vector<std::vector<ActionOp>> actions(pipeline.workerCount());
  for (Operation &op : block) {
    prefetchNext(op);
    auto action = dyn_cast<ActionOp>(op);
    if (!action)
      continue;
    std::optional<uint32_t> worker = action.getWorker();
    if (!worker)
      return action.emitOpError(
          "expected an action to name its worker (on N): write it, or "
          "let chimera-schedule order all actions");
    if (*worker >= actions.size())
      return action.emitOpError("expected a worker below ")
             << actions.size() << ", got " << *worker;
    actions[*worker].push_back(action);
  }
  for (std::vector<ActionOp> &own : actions)
    for (size_t i = 0; i + 1 < own.size(); ++i)
      if (isa<ForwardOp>(own[i]) && own[i].getJoined()) {
        pairs.add(own[i], own[i + 1]);
        // Posts are inserted before the posts that exist already. So process
        // the second action first: then its posts come last.
        std::swap(own[i], own[i + 1]);
        ++i;
      }
  for (const std::vector<ActionOp> &own : actions)
    for (size_t i = 0; i < own.size(); ++i) {
      if (i + 8 < own.size()) {
        prefetch(own[i + 8]);
        prefetchUsers(own[i + 4]);
      }
      if (failed(sendResults(pipeline, own[i], owners, poster)))
        return failure();
    }
  return success();
}

/// Moves each post to the place in the global order at which its action ends in
/// the simulation. (Before, the post is right after the action.) Then messages
/// are posted in the order in which they are ready. This matters if the
/// messages of a worker take effect one after another: otherwise the message of
/// an action that is still running would delay messages that are ready earlier.
void postWhenReady(Block &block, const ActionTimes &times) {
  struct Post {
    int64_t ready;
    size_t number;
    Operation *op;
    bool operator<(const Post &other) const {
      return std::tie(ready, number) > std::tie(other.ready, other.number);
    }
  };
  std::priority_queue<Post> pending; // the earliest ready one on top
  size_t count = 0;
  auto postBefore = [&](Operation *place, int64_t time) {
    for (; !pending.empty() && pending.top().ready <= time; pending.pop())
      pending.top().op->moveBefore(place);
  };
  int64_t ready = 0;          // end of the last action
  Operation *place = nullptr; // first op after the posts of the last action
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<PostSendOp, PostReceiveOp>(op)) {
      pending.push({ready, count++, &op});
      continue;
    }
    if (!place)
      place = &op;
    auto action = dyn_cast<ActionOp>(op);
    if (!action)
      continue;
    postBefore(place, times.startOf(action));
    ready = times.endOf(action);
    place = nullptr;
  }
  postBefore(place, INT64_MAX);
}

LogicalResult communicate(PipelineOp pipeline, ScheduleAnalysis &analysis,
                          bool isOneStream) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections) || failed(refuseOrders(pipeline)))
    return failure();
  bool overlaps = stepsOverlap(*sections);
  FailureOr<Layout> layout;
  if (overlaps) {
    layout = layoutOf(pipeline);
    if (failed(layout) || failed(verifyReplicas(*sections, *layout)))
      return failure();
  }
  Pairs pairs;
  Poster poster(pipeline.getContext(), pairs);
  for (SectionOp section : *sections) {
    Block &block = section.getBody().front();
    SmallVector<uint32_t> owners;
    if (overlaps)
      owners = ownerWorkers(block.back().getOperandTypes(), *layout);
    if (failed(communicate(pipeline, block, owners, pairs, poster)))
      return failure();
  }
  if (!isOneStream)
    return success();
  FailureOr<ActionTimes> times = ActionTimes::of(pipeline, analysis);
  if (failed(times))
    return failure();
  for (SectionOp section : *sections)
    postWhenReady(section.getBody().front(), *times);
  return success();
}

struct Communicate : impl::CommunicatePassBase<Communicate> {
  using CommunicatePassBase::CommunicatePassBase;

  void runOnOperation() override {
    if (failed(checkAllCaps()))
      return signalPassFailure();
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(communicate(
              pipeline, getChildAnalysis<ScheduleAnalysis>(pipeline),
              messages == program::MessageModel::StreamPerDevice)))
        return signalPassFailure();
    markAnalysesPreserved<ScheduleAnalysis>();
  }

  /// Checks the memory caps before any op is made. Reports all pipelines whose
  /// workers exceed their caps, and fails if there are any.
  LogicalResult checkAllCaps() {
    bool fit = true;
    for (auto pipeline : getOperation().getOps<PipelineOp>()) {
      if (!capOf(pipeline))
        continue;
      const ScheduledProblem *of =
          getChildAnalysis<ScheduleAnalysis>(pipeline).verified();
      if (!of)
        return failure();
      fit &= succeeded(checkCaps(pipeline, *of));
    }
    return success(fit);
  }
};

} // namespace
} // namespace chimera
