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

  /// Sends `value`, made by `producer`, to the consumer that uses it through
  /// `use`. Posts stand behind the producer, the receive first; waits stand
  /// around the consumer.
  void send(ActionOp producer, Value value, OpOperand &use) {
    Operation *consumer = use.getOwner();
    IntegerAttr from = number(*producer.getWorker());
    IntegerAttr to = number(*cast<PlacedOp>(consumer).getWorker());
    Location loc = producer.getLoc();
    IntegerAttr pipeline = number(producer.getPipeline());
    IntegerAttr stage = number(producer.getStage());
    IntegerAttr batch = number(producer.getMicroBatch());
    DenseI32ArrayAttr none;

    builder.setInsertionPointAfter(producer);
    auto receive = builder.create<PostReceiveOp>(
        loc, arriving(value.getType()), from, batch, pipeline, stage, to, none);
    auto send = builder.create<PostSendOp>(loc, sending, value, to, batch,
                                           pipeline, stage, from, none);

    builder.setInsertionPoint(consumer);
    auto arrived = builder.create<WaitOp>(loc, value.getType(),
                                          receive.getTransfer(), to, none);
    use.set(arrived.getValue());
    // Behind the consumer's own posts, made already or not.
    Operation *last = consumer;
    while (isa<PostReceiveOp, PostSendOp>(last->getNextNode()))
      last = last->getNextNode();
    builder.setInsertionPointAfter(last);
    builder.create<WaitOp>(loc, Type(), send.getTransfer(), from, none);
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

LogicalResult communicate(PipelineOp pipeline) {
  FailureOr<StepOp> step = stepOf(pipeline);
  if (failed(step))
    return failure();
  // Worker by worker, so that what a worker posts lies together in memory.
  std::map<uint32_t, std::vector<ActionOp>> actions;
  for (auto action : step->getBody().front().getOps<ActionOp>()) {
    if (!action.getWorker())
      return action.emitOpError(
          "expected an action to name its worker: run chimera-schedule first");
    actions[*action.getWorker()].push_back(action);
  }
  Poster poster(pipeline.getContext());
  for (auto &[worker, own] : actions)
    for (ActionOp action : own)
      for (Value value : action->getResults())
        for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
          // All-reduces cross workers by themselves; synchronise splits them.
          auto consumer = dyn_cast<ActionOp>(use.getOwner());
          if (!consumer || consumer.getWorker() == worker)
            continue;
          if (!isa<ActivationType, GradientType>(value.getType()))
            return action.emitOpError("expected only activations and gradients "
                                      "used on another worker, got ")
                   << value.getType() << " on worker " << *consumer.getWorker();
          poster.send(action, value, use);
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
