//===- Recompute.cpp - Recomputes instead of stashes ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "dialect/LoopCarried.h"
#include "passes/Passes.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/Reordering.h"
#include "passes/schedule/ScheduledProblem.h"
#include "passes/schedule/Sections.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/Passes.h.inc"

namespace {

/// The actions of each worker in order, over all sections.
using Streams = std::vector<std::vector<ActionOp>>;

Streams streamsOf(ArrayRef<SectionOp> sections, size_t workers) {
  Streams streams(workers);
  for (SectionOp section : sections)
    for (auto action : section.getBody().getOps<ActionOp>())
      streams[*action.getWorker()].push_back(action);
  return streams;
}

/// Inserts the recomputes into a step, or into steps that overlap.
class Recomputer {
public:
  Recomputer(MLIRContext *context, ArrayRef<SectionOp> sections,
             const schedule::Problem &problem)
      : builder(context), sections(sections), problem(problem) {}

  /// Makes the recomputes of `schedule` and inserts them into `streams`. Then
  /// `streams` has the same actions as `schedule`. Fails with a diagnostic if
  /// the stash of a backward is not the result of a forward, or if the stash
  /// has another use.
  LogicalResult insert(const schedule::Schedule &schedule, Streams &streams) {
    for (auto [w, stream] : llvm::enumerate(streams)) {
      std::vector<ActionOp> all;
      auto next = stream.begin();
      for (const schedule::Action &action : schedule.workers[w]) {
        if (action.kind != schedule::Kind::Recompute) {
          all.push_back(*next++);
          continue;
        }
        FailureOr<RecomputeOp> made =
            recompute(*std::find_if(next, stream.end(), [&](ActionOp op) {
              return isBackwardOf(op, action);
            }));
        if (failed(made))
          return failure();
        all.push_back(*made);
      }
      stream = std::move(all);
    }
    if (stepsOverlap(sections))
      for (SectionOp section : sections)
        carryInputs(section.getBody().front());
    for (auto [w, stream] : llvm::enumerate(streams))
      for (ActionOp &action : stream) {
        action.setSlot(std::nullopt);
        if (auto forward = dyn_cast<ForwardOp>(action.getOperation());
            forward && changed.contains(forward))
          action = cast<ActionOp>(dropStashes(forward).getOperation());
      }
    return success();
  }

  /// Sorts the ops of a section by `order`. The gradient sums stay valid,
  /// because each sum belongs to one worker, and the order of the backwards of
  /// one worker does not change.
  void reorder(SectionOp section, Streams &streams,
               ArrayRef<schedule::ActionRef> order) {
    Operation *anchor =
        &*llvm::find_if_not(section.getBody().front(), [&](Operation &op) {
          return mayBeBetweenActions(op, problem.updates);
        });
    DenseSet<Operation *> brought;
    for (const schedule::ActionRef &ref : order) {
      ActionOp op = streams[ref.worker][ref.index];
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp();
            isa_and_nonnull<LoadOp>(source) && brought.insert(source).second)
          source->moveBefore(anchor);
      op->moveBefore(anchor);
      if (problem.updates == schedule::Updates::EachMicroBatch &&
          op.getNewSum())
        for (Operation *update : reductionAndUpdateOf(op.getNewSum()))
          update->moveBefore(anchor);
    }
  }

private:
  /// True if `op` is the backward that uses the stash of `recompute`. The
  /// backward need not be the next action: if the user gives the order, other
  /// actions may be between the two. An epilogue numbers its micro-batches from
  /// 0.
  bool isBackwardOf(ActionOp op, schedule::Action recompute) const {
    recompute.microBatch %= problem.microBatches();
    recompute.kind = isa<BackwardOp>(op) ? schedule::Kind::Backward
                                         : schedule::Kind::InputGradient;
    return actionOf(op) == recompute;
  }

  /// Makes a recompute right before `backward`, and makes `backward` use the
  /// stash of the recompute.
  FailureOr<RecomputeOp> recompute(ActionOp backward) {
    OpOperand &stash = backward->getOpOperand(0);
    auto forward = stash.get().getDefiningOp<ForwardOp>();
    auto taken = dyn_cast<BlockArgument>(stash.get());
    if ((!forward && !taken) || !stash.get().hasOneUse())
      return backward.emitOpError("expected a stash that a forward makes and "
                                  "nothing else uses");
    IntegerAttr part, parts;
    if (backward.getParts() > 1) {
      part = builder.getI32IntegerAttr(backward.getPart());
      parts = builder.getI32IntegerAttr(backward.getParts());
    }
    IntegerAttr pipeline = builder.getI32IntegerAttr(backward.getPipeline());
    IntegerAttr stage = builder.getI32IntegerAttr(backward.getStage());
    IntegerAttr batch = builder.getI32IntegerAttr(backward.getMicroBatch());
    IntegerAttr worker = builder.getI32IntegerAttr(*backward.getWorker());
    builder.setInsertionPoint(backward);
    Location loc = backward.getLoc();
    Value input, weights, labels;
    if (forward) {
      loc = forward.getLoc();
      input = forward.getInput();
      weights = forward.getWeights();
      labels = forward.getLabels();
      changed.insert(forward);
    } else {
      // The stash is loop-carried, so the recompute needs no labels: only the
      // last stage needs labels, and it has no micro-batch in flight between
      // sections.
      input = taken;
      if (backward.getStage() == 0)
        input =
            builder.create<LoadOp>(loc, inputType(0), pipeline, stage, worker,
                                   DenseI32ArrayAttr(), batch, IntegerAttr());
      weights = *llvm::find_if(backward->getOperands(), [](Value operand) {
        return isa<WeightsType>(operand.getType());
      });
    }
    Type type = stash.get().getType();
    auto op = builder.create<RecomputeOp>(
        loc, type, input, weights, labels, pipeline, stage, batch, part, parts,
        IntegerAttr(), worker, DenseI32ArrayAttr());
    stash.set(op.getStash());
    return op;
  }

  /// The type of the input of a stage's forwards.
  Type inputType(int32_t s) {
    inputTypes.resize(problem.stages.size());
    if (!inputTypes[s])
      for (SectionOp section : sections)
        for (auto forward : section.getBody().getOps<ForwardOp>())
          inputTypes[forward.getStage()] = forward.getInput().getType();
    return inputTypes[s];
  }

  /// Replaces the loop-carried stashes of recomputed stages by the inputs of
  /// their forwards. On stage 0 the stashes are only removed, because stage 0
  /// loads its tokens again. Requires that verifySections succeeds, so that
  /// every stash that a section yields is the result of a forward.
  void carryInputs(Block &block) {
    Operation *yield = block.getTerminator();
    SmallVector<LoopCarried> taken = *loopCarriedOf(block.getArgumentTypes());
    SmallVector<LoopCarried> left = *loopCarriedOf(yield->getOperandTypes());
    llvm::BitVector loaded(block.getNumArguments());
    SmallVector<Value> yielded;
    for (auto [stage, from, to] : llvm::enumerate(taken, left)) {
      auto s = static_cast<int32_t>(stage);
      bool again = problem.recomputeOf(s) != schedule::Recompute::None;
      if (again && s == 0)
        loaded.set(from.firstStash(), from.firstActivation());
      for (unsigned k = from.firstStash();
           again && s > 0 && k < from.firstActivation(); ++k)
        block.getArgument(k).setType(inputType(s));
      for (unsigned k = to.first; k < to.end(); ++k) {
        Value value = yield->getOperand(k);
        if (!again || !isa<StashType>(value.getType())) {
          yielded.push_back(value);
          continue;
        }
        auto forward = cast<ForwardOp>(value.getDefiningOp());
        changed.insert(forward);
        if (s > 0)
          yielded.push_back(forward.getInput());
      }
    }
    yield->setOperands(yielded);
    block.eraseArguments(loaded);
  }

  /// Replaces the forward by a new one without the stashes that have no use.
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
  ArrayRef<SectionOp> sections;
  const schedule::Problem &problem;
  DenseSet<Operation *> changed; ///< forwards with stashes that may have no use
  SmallVector<Type> inputTypes;  ///< by stage, null until needed
};

LogicalResult recompute(PipelineOp pipeline) {
  std::vector<schedule::Recompute> stages = recomputeOf(pipeline);
  if (stages.empty())
    return success();
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  if (failed(problem))
    return failure();
  std::optional<schedule::Schedule> given;
  if (hasOrders(pipeline)) {
    FailureOr<Orders> orders = readOrders(pipeline, *problem);
    if (failed(orders))
      return failure();
    given = std::move(orders->schedule);
    if (given->workers == schedule::removeRecompute(*given).workers)
      return refuseOrders(pipeline);
    eraseOrders(pipeline);
  }
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  for (SectionOp section : *sections)
    for (auto op : section.getBody().getOps<RecomputeOp>())
      return op.emitOpError("expected a scheduled step without recomputes");
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of) || failed(verifySections(pipeline, of->problem)))
    return failure();
  problem->splits = of->problem.splits;
  problem->recompute = std::move(stages);
  if (std::string error = schedule::check(*problem); !error.empty())
    return pipeline.emitOpError(error);
  if (given &&
      schedule::removeRecompute(*given).workers != of->schedule.workers)
    return pipeline.emitOpError("expected the step in the order of the "
                                "chimera.order ops: run chimera-schedule "
                                "first");
  schedule::Schedule schedule =
      given ? std::move(*given)
            : schedule::insertRecompute(*problem, of->schedule);
  if (failed(report(pipeline,
                    "recompute: ", schedule::verify(*problem, schedule))))
    return failure();
  Streams streams = streamsOf(*sections, schedule.workers.size());
  Recomputer recomputer(pipeline.getContext(), *sections, *problem);
  if (failed(recomputer.insert(schedule, streams)))
    return failure();
  std::vector<std::vector<schedule::ActionRef>> orders = splitBySection(
      schedule::inOrderOfStarts(schedule::simulate(*problem, schedule)),
      schedule);
  for (auto [section, order] : llvm::zip(*sections, orders))
    recomputer.reorder(section, streams, order);
  return success();
}

struct Recompute : impl::RecomputePassBase<Recompute> {
  void runOnOperation() override {
    bool any = false;
    for (auto pipeline : getOperation().getOps<PipelineOp>()) {
      any |= !recomputeOf(pipeline).empty();
      if (failed(recompute(pipeline)))
        return signalPassFailure();
    }
    if (!any)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace chimera
