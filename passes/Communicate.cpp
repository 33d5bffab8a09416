//===- Communicate.cpp - Posts and waits ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/State.h"
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
  /// producer, the receive first; waits stand around `awaiting`, before it where
  /// it ends the section. Returns what arrives.
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
                          ActionOp consumer) {
  if (!pipeline.getRecomputeFused() || !isa<GradientType>(value.getType()))
    return nullptr;
  auto recompute = consumer->getOperand(0).getDefiningOp<RecomputeOp>();
  return recompute && producer->isBeforeInBlock(recompute)
             ? recompute.getOperation()
             : nullptr;
}

/// Sends what `producer` makes to the workers that use it, once to each.
LogicalResult sendResults(PipelineOp pipeline, ActionOp producer,
                          Poster &poster) {
  for (Value value : producer->getResults()) {
    SmallVector<OpOperand *, 4> uses;
    for (OpOperand &use : value.getUses()) {
      // All-reduces cross workers by themselves; synchronise splits them.
      auto consumer = dyn_cast<ActionOp>(use.getOwner());
      if (!consumer || consumer.getWorker() == producer.getWorker())
        continue;
      if (!isa<ActivationType, GradientType>(value.getType()))
        return producer.emitOpError("expected only activations and gradients "
                                    "used on another worker, got ")
               << value.getType() << " on worker " << *consumer.getWorker();
      uses.push_back(&use);
    }
    if (uses.size() > 1)
      llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
        return a->getOwner()->isBeforeInBlock(b->getOwner());
      });
    while (!uses.empty()) {
      auto first = cast<ActionOp>(uses.front()->getOwner());
      Operation *early = fusedRecompute(pipeline, producer, value, first);
      Value arrived = poster.send(producer, value, *first.getWorker(),
                                  early ? early : first.getOperation());
      llvm::erase_if(uses, [&](OpOperand *use) {
        if (cast<ActionOp>(use->getOwner()).getWorker() != first.getWorker())
          return false;
        use->set(arrived);
        return true;
      });
    }
  }
  return success();
}

/// Sends on what a section hands to another worker than the one that made it:
/// an activation in flight. Received in the section that sends it, it is a
/// value like any other to the next.
void sendYielded(Block &block, const Layout &layout, Poster &poster) {
  Operation *yield = block.getTerminator();
  SmallVector<Carried> replicas = *carriedBy(yield->getOperandTypes());
  for (auto [index, replica] : llvm::enumerate(replicas)) {
    if (!replica.activation)
      continue;
    OpOperand &use = yield->getOpOperand(replica.lastActivation());
    auto producer = use.get().getDefiningOp<ActionOp>();
    auto home = static_cast<uint32_t>(layout.workerOf(
        index / layout.stages.size(), index % layout.stages.size()));
    if (producer && producer.getWorker() != home)
      use.set(poster.send(producer, use.get(), home, yield));
  }
}

LogicalResult communicate(PipelineOp pipeline, Block &block, Poster &poster) {
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
      if (failed(sendResults(pipeline, action, poster)))
        return failure();
  return success();
}

LogicalResult communicate(PipelineOp pipeline) {
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  Poster poster(pipeline.getContext());
  for (SectionOp section : *sections)
    if (failed(communicate(pipeline, section.getBody().front(), poster)))
      return failure();
  if (!stepsOverlap(*sections))
    return success();
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout) || failed(verifyReplicas(*sections, *layout)))
    return failure();
  for (SectionOp section : *sections)
    sendYielded(section.getBody().front(), *layout, poster);
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
