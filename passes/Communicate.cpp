//===- Communicate.cpp - Posts and waits ----------------------------------===//
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

#define GEN_PASS_DEF_COMMUNICATEPASS
#include "passes/Passes.h.inc"

namespace {

/// Sends `value`, made by `producer`, to the consumer that uses it through
/// `use`. Posts stand behind the producer, the receive first; waits stand
/// around the consumer.
void sendAcross(ActionOp producer, Value value, OpOperand &use,
                OpBuilder &builder) {
  Operation *consumer = use.getOwner();
  uint32_t from = *producer.getWorker();
  uint32_t to = *cast<PlacedOp>(consumer).getWorker();
  Location loc = producer.getLoc();
  auto number = [&](uint32_t n) { return builder.getI32IntegerAttr(n); };
  IntegerAttr pipeline = number(producer.getPipeline());
  IntegerAttr stage = number(producer.getStage());
  IntegerAttr batch = number(producer.getMicroBatch());
  DenseI32ArrayAttr none;

  builder.setInsertionPointAfter(producer);
  auto receive = builder.create<PostReceiveOp>(
      loc, ArrivingType::get(builder.getContext(), value.getType()),
      number(from), batch, pipeline, stage, number(to), none);
  auto send = builder.create<PostSendOp>(
      loc, SendingType::get(builder.getContext()), value, number(to), batch,
      pipeline, stage, number(from), none);

  builder.setInsertionPoint(consumer);
  auto arrived = builder.create<WaitOp>(
      loc, value.getType(), receive.getTransfer(), number(to), none);
  use.set(arrived.getValue());
  builder.setInsertionPointAfter(consumer);
  builder.create<WaitOp>(loc, Type(), send.getTransfer(), number(from), none);
}

LogicalResult communicate(PipelineOp pipeline) {
  FailureOr<StepOp> step = stepOf(pipeline);
  if (failed(step))
    return failure();
  Block &block = step->getBody().front();
  std::vector<ActionOp> actions(block.getOps<ActionOp>().begin(),
                                block.getOps<ActionOp>().end());
  OpBuilder builder(pipeline.getContext());
  for (ActionOp action : actions)
    if (!action.getWorker())
      return action.emitOpError(
          "expected an action to name its worker: run chimera-schedule first");
  for (ActionOp action : actions) {
    for (Value value : action->getResults())
      for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
        // All-reduces cross workers by themselves; synchronise splits them.
        auto consumer = dyn_cast<ActionOp>(use.getOwner());
        if (!consumer || consumer.getWorker() == action.getWorker())
          continue;
        if (!isa<ActivationType, GradientType>(value.getType()))
          return action.emitOpError("expected only activations and gradients "
                                    "used on another worker, got ")
                 << value.getType() << " on worker " << *consumer.getWorker();
        sendAcross(action, value, use, builder);
      }
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
