//===- Communicate.cpp - Posts and waits ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_COMMUNICATEPASS
#include "passes/Passes.h.inc"

namespace {

/// Makes the posts and waits of a step. Attributes and types are uniqued by a
/// search, and a step needs few of them for very many ops: each is made once.
class Poster {
public:
  explicit Poster(MLIRContext *context)
      : builder(context), sending(SendingType::get(context)) {}

  /// Sends `value`, made by `producer`, to worker `to`. Posts stand behind the
  /// producer, the receive first; waits stand around `awaiting`, before it
  /// where it ends the section. Returns what arrives.
  Value send(ActionOp producer, Value value, uint32_t worker,
             Operation *awaiting) {
    IntegerAttr from = number(*producer.getWorker());
    IntegerAttr to = number(worker);
    Location loc = producer.getLoc();
    IntegerAttr pipeline = number(producer.getPipeline());
    IntegerAttr stage = number(producer.getStage());
    IntegerAttr batch = number(producer.getMicroBatch());
    IntegerAttr count, part, parts;
    if (producer.getCount() > 1)
      count = number(producer.getCount());
    if (producer.getParts() > 1) {
      part = number(producer.getPart());
      parts = number(producer.getParts());
    }
    DenseI32ArrayAttr none;

    builder.setInsertionPointAfter(producer);
    auto receive = builder.create<PostReceiveOp>(
        loc, arriving(value.getType()), from, batch, count, part, parts,
        pipeline, stage, to, none);
    auto send =
        builder.create<PostSendOp>(loc, sending, value, to, batch, count, part,
                                   parts, pipeline, stage, from, none);

    builder.setInsertionPoint(awaiting);
    auto arrived = builder.create<WaitOp>(loc, value.getType(),
                                          receive.getTransfer(), to, none);
    // Behind the action's own posts, made already or not.
    Operation *last = awaiting;
    while (isa_and_nonnull<PostReceiveOp, PostSendOp>(last->getNextNode()))
      last = last->getNextNode();
    if (!isa<YieldOp>(awaiting))
      builder.setInsertionPointAfter(last);
    builder.create<WaitOp>(loc, Type(), send.getTransfer(), from, none);
    return arrived.getValue();
  }

private:
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
  Type sending;
  std::vector<IntegerAttr> numbers;
  DenseMap<Type, Type> arrivingTypes;
};

/// The recompute that waits for the gradient that `consumer` uses, null if
/// there is none.
Operation *fusedRecompute(PipelineOp pipeline, ActionOp producer, Value value,
                          Operation *consumer) {
  if (!pipeline.getRecomputeFused() || !isa<GradientType>(value.getType()))
    return nullptr;
  auto recompute = consumer->getOperand(0).getDefiningOp<RecomputeOp>();
  return recompute && producer->isBeforeInBlock(recompute)
             ? recompute.getOperation()
             : nullptr;
}

/// The worker that uses a value: that of an action, or of the replica that the
/// section hands it on for. None for an op that is of no worker yet.
std::optional<uint32_t> workerOf(OpOperand &use, ArrayRef<uint32_t> homes) {
  if (auto action = dyn_cast<ActionOp>(use.getOwner()))
    return action.getWorker();
  if (isa<YieldOp>(use.getOwner()) && !homes.empty())
    return homes[use.getOperandNumber()];
  return std::nullopt;
}

/// Sends what `producer` makes to the workers that use it, once to each; what
/// is in flight at the section's end is received before it.
LogicalResult sendResults(PipelineOp pipeline, ActionOp producer,
                          ArrayRef<uint32_t> homes, Poster &poster) {
  for (Value value : producer->getResults()) {
    SmallVector<OpOperand *, 4> uses;
    for (OpOperand &use : value.getUses()) {
      // All-reduces cross workers by themselves; synchronise splits them.
      std::optional<uint32_t> worker = workerOf(use, homes);
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
      uint32_t worker = *workerOf(*uses.front(), homes);
      Operation *first = uses.front()->getOwner();
      Operation *early = fusedRecompute(pipeline, producer, value, first);
      Value arrived =
          poster.send(producer, value, worker, early ? early : first);
      llvm::erase_if(uses, [&](OpOperand *use) {
        if (workerOf(*use, homes) != worker)
          return false;
        use->set(arrived);
        return true;
      });
    }
  }
  return success();
}

LogicalResult communicate(PipelineOp pipeline, Block &block,
                          ArrayRef<uint32_t> homes, Poster &poster) {
  // Worker by worker, so that what a worker posts lies together in memory.
  std::map<uint32_t, std::vector<ActionOp>> actions;
  for (auto action : block.getOps<ActionOp>()) {
    if (!action.getWorker())
      return action.emitOpError(
          "expected an action to name its worker: run chimera-schedule first");
    actions[*action.getWorker()].push_back(action);
  }
  for (auto &[worker, own] : actions)
    for (ActionOp action : own)
      if (failed(sendResults(pipeline, action, homes, poster)))
        return failure();
  return success();
}

LogicalResult communicate(PipelineOp pipeline) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  bool overlaps = stepsOverlap(*sections);
  FailureOr<Layout> layout;
  if (overlaps) {
    layout = layoutOf(pipeline);
    if (failed(layout) || failed(verifyReplicas(*sections, *layout)))
      return failure();
  }
  Poster poster(pipeline.getContext());
  for (SectionOp section : *sections) {
    Block &block = section.getBody().front();
    SmallVector<uint32_t> homes;
    if (overlaps)
      homes = homesOf(block.back().getOperandTypes(), *layout);
    if (failed(communicate(pipeline, block, homes, poster)))
      return failure();
  }
  return success();
}

struct Communicate : impl::CommunicatePassBase<Communicate> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(communicate(pipeline)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace chimera
