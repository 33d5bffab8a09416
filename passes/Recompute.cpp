//===- Recompute.cpp - Forwards again instead of stashes ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Recompute.h"
#include "passes/Bridge.h"
#include "passes/Order.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/Passes.h.inc"

namespace {

/// The actions of each worker in their order.
using Streams = std::vector<std::vector<ActionOp>>;

/// Makes the recomputes of a step.
class Recomputer {
public:
  explicit Recomputer(Block &block)
      : builder(block.getParentOp()->getContext()), block(block) {}

  /// Puts what `schedule` has more than the step into `streams`, so that both
  /// have the same actions. Fails, with a diagnostic, where a backward's stash
  /// does not come from a forward for it alone.
  LogicalResult insert(const schedule::Schedule &schedule, Streams &streams) {
    for (auto [w, stream] : llvm::enumerate(streams)) {
      std::vector<ActionOp> all;
      auto next = stream.begin();
      for (const schedule::Action &action : schedule.workers[w]) {
        if (action.kind != schedule::Kind::Recompute) {
          all.push_back(*next++);
          continue;
        }
        FailureOr<RecomputeOp> made = recompute(*next);
        if (failed(made))
          return failure();
        all.push_back(*made);
      }
      stream = std::move(all);
    }
    for (auto [w, stream] : llvm::enumerate(streams))
      for (ActionOp &action : stream) {
        action.setSlot(std::nullopt);
        if (auto forward = dyn_cast<ForwardOp>(action.getOperation());
            forward && changed.contains(forward))
          action = cast<ActionOp>(dropStashes(forward).getOperation());
      }
    return success();
  }

  /// Brings the block into the order of `order`; sums keep theirs, as each is
  /// of one worker.
  void reorder(Streams &streams, const std::vector<Turn> &order) {
    Operation *anchor = &block.back();
    for (Operation &op : block)
      if (!isa<LoadOp, ZeroOp, ActionOp>(op)) {
        anchor = &op;
        break;
      }
    DenseSet<Operation *> brought;
    for (const Turn &turn : order) {
      ActionOp op = streams[turn.worker][turn.index];
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp();
            isa_and_nonnull<LoadOp, ZeroOp>(source) &&
            brought.insert(source).second)
          source->moveBefore(anchor);
      op->moveBefore(anchor);
    }
  }

private:
  /// The forward again, right before `backward`, which then takes its stash.
  FailureOr<RecomputeOp> recompute(ActionOp backward) {
    OpOperand &stash = backward->getOpOperand(0);
    auto forward = stash.get().getDefiningOp<ForwardOp>();
    if (!forward || !stash.get().hasOneUse())
      return backward.emitOpError("expected a stash that a forward makes for "
                                  "it alone");
    IntegerAttr part, parts;
    if (backward.getParts() > 1) {
      part = builder.getI32IntegerAttr(backward.getPart());
      parts = builder.getI32IntegerAttr(backward.getParts());
    }
    builder.setInsertionPoint(backward);
    auto op = builder.create<RecomputeOp>(
        forward.getLoc(), stash.get().getType(), forward.getInput(),
        forward.getWeights(), forward.getLabels(), forward.getPipelineAttr(),
        forward.getStageAttr(),
        builder.getI32IntegerAttr(backward.getMicroBatch()), part, parts,
        IntegerAttr(), builder.getI32IntegerAttr(*backward.getWorker()),
        DenseI32ArrayAttr());
    stash.set(op.getStash());
    changed.insert(forward);
    return op;
  }

  /// The same forward without the stashes that nothing uses.
  ForwardOp dropStashes(ForwardOp forward) {
    SmallVector<Value> kept(forward.getOutputs());
    for (Value stash : forward.getStashes())
      if (!stash.use_empty())
        kept.push_back(stash);
    builder.setInsertionPoint(forward);
    auto op =
        builder.create<ForwardOp>(forward.getLoc(), ValueRange(kept).getTypes(),
                                  forward->getOperands(), forward->getAttrs());
    for (auto [from, to] : llvm::zip(kept, op.getValues()))
      from.replaceAllUsesWith(to);
    forward.erase();
    return op;
  }

  OpBuilder builder;
  Block &block;
  DenseSet<Operation *> changed; ///< forwards with a stash too many
};

/// The actions of a step by worker, as scheduleOf has them.
Streams streamsOf(Block &step, size_t workers) {
  Streams streams(workers);
  for (auto action : step.getOps<ActionOp>())
    streams[*action.getWorker()].push_back(action);
  return streams;
}

LogicalResult recompute(PipelineOp pipeline) {
  std::vector<schedule::Recompute> stages = recomputeOf(pipeline);
  if (stages.empty())
    return success();
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  if (failed(problem))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  Block &block = sections->front().getBody().front();
  for (auto op : block.getOps<RecomputeOp>())
    return op.emitOpError("expected a scheduled step, which has no "
                          "recomputes yet");
  FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
  if (failed(schedule))
    return failure();
  problem->recompute = std::move(stages);
  if (std::string error = schedule::check(*problem); !error.empty())
    return pipeline.emitOpError(error);
  *schedule = schedule::insertRecompute(*problem, *schedule);
  if (failed(report(pipeline,
                    "recompute: ", schedule::verify(*problem, *schedule))))
    return failure();
  Streams streams = streamsOf(block, schedule->workers.size());
  Recomputer recomputer(block);
  if (failed(recomputer.insert(*schedule, streams)))
    return failure();
  recomputer.reorder(streams,
                     globalOrder(schedule::simulate(*problem, *schedule)));
  return success();
}

struct Recompute : impl::RecomputePassBase<Recompute> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(recompute(pipeline)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace chimera
