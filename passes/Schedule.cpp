//===- Schedule.cpp - The order of actions --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Simulate.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"

namespace {

/// An action's place in the schedule and when it starts.
struct Turn {
  int64_t start;
  int32_t worker;
  int32_t index;
};

/// All actions by start, then worker. An action starts after what it depends
/// on, since costs are positive, so this order respects every dependency.
std::vector<Turn> globalOrder(const schedule::Timing &timing) {
  std::vector<Turn> order;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    for (size_t i = 0; i < timing.starts[w].size(); ++i)
      order.push_back({timing.starts[w][i], static_cast<int32_t>(w),
                       static_cast<int32_t>(i)});
  std::sort(order.begin(), order.end(), [](const Turn &a, const Turn &b) {
    return std::tie(a.start, a.worker) < std::tie(b.start, b.worker);
  });
  return order;
}

/// Reorders the block of a step.
class Reorder {
public:
  Reorder(const Layout &layout, const schedule::Problem &problem, Block &block)
      : layout(layout), ids(problem), block(block),
        sums(layout.directions.size() * layout.stages.size()),
        zeros(sums.size()) {}

  /// Fails, with a diagnostic, where the step is not what `unroll` makes.
  LogicalResult collect() {
    actions.resize(ids.count());
    for (Operation &op : block) {
      if (auto action = dyn_cast<ActionOp>(op)) {
        if (failed(collect(action)))
          return failure();
        continue;
      }
      if (!isa<LoadOp, ZeroOp, AllReduceOp, OptimizerStepOp, YieldOp>(op))
        return op.emitOpError("expected an op of an unrolled step");
      if (!anchor && !isa<LoadOp, ZeroOp>(op))
        anchor = &op;
      if (auto zero = dyn_cast<ZeroOp>(op))
        if (failed(collect(zero)))
          return failure();
      if (auto update = dyn_cast<OptimizerStepOp>(op))
        if (failed(checkReplica(update)))
          return failure();
    }
    auto isMissing = [&](int64_t id) { return ids.has(id) && !actions[id]; };
    if (llvm::any_of(llvm::seq(ids.count()), isMissing))
      return block.getParentOp()->emitOpError(
          "expected every action of the step: run chimera-unroll first");
    if (llvm::is_contained(zeros, nullptr))
      return block.getParentOp()->emitOpError(
          "expected a chimera.zero for each replica: run chimera-unroll first");
    return success();
  }

  void apply(const schedule::Schedule &schedule,
             const std::vector<Turn> &order) {
    for (const Turn &turn : order) {
      const schedule::Action &action =
          schedule.workers[turn.worker][turn.index];
      ActionOp op = actions[*ids.find(action)];
      op.setWorker(turn.worker);
      if (schedule.hasSlots())
        op.setSlot(schedule.slots[turn.worker][turn.index]);
      moveHere(op, turn.worker);
    }
    for (Operation &op : llvm::make_range(anchor->getIterator(), block.end()))
      finish(&op);
  }

private:
  LogicalResult collect(ActionOp action) {
    std::optional<int64_t> id = ids.find(actionOf(action));
    if (!id || actions[*id])
      return action.emitOpError("expected each action of the step once");
    actions[*id] = action;
    return success();
  }

  LogicalResult collect(ZeroOp zero) {
    if (failed(checkReplica(zero)))
      return failure();
    ZeroOp &known =
        zeros[zero.getPipeline() * layout.stages.size() + zero.getStage()];
    if (known)
      return zero.emitOpError("expected one chimera.zero for each replica");
    known = zero;
    return success();
  }

  template <typename Op> LogicalResult checkReplica(Op op) {
    if (op.getPipeline() < layout.directions.size() &&
        op.getStage() < layout.stages.size())
      return success();
    return op.emitOpError("expected a pipeline below ")
           << layout.directions.size() << " and a stage below "
           << layout.stages.size();
  }

  Value &sumOf(uint32_t pipeline, uint32_t stage) {
    return sums[pipeline * layout.stages.size() + stage];
  }

  /// Puts `op` next, behind the loads and the zero that it needs, and threads
  /// its sum.
  void moveHere(ActionOp op, int32_t worker) {
    OpOperand *accumulator = op.getAccumulator();
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (isa_and_nonnull<LoadOp>(producer))
        bring(cast<PlacedOp>(producer), worker);
    }
    if (accumulator) {
      Value &sum = sumOf(op.getPipeline(), op.getStage());
      if (!sum)
        sum = firstSum(op, worker);
      accumulator->set(sum);
      sum = op->getResult(0);
    }
    op->moveBefore(anchor);
  }

  void bring(PlacedOp op, int32_t worker) {
    op.setWorker(worker);
    op->moveBefore(anchor);
  }

  /// The zero from which the sums of the replica of `op` start.
  Value firstSum(ActionOp op, int32_t worker) {
    ZeroOp zero =
        zeros[op.getPipeline() * layout.stages.size() + op.getStage()];
    bring(cast<PlacedOp>(zero.getOperation()), worker);
    return zero.getGradient();
  }

  /// Gives an op behind the actions its worker and the complete sums.
  void finish(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto producer = operand.get().getDefiningOp<ActionOp>();
      if (producer && producer.getAccumulator())
        operand.set(sumOf(producer.getPipeline(), producer.getStage()));
    }
    if (auto update = dyn_cast<OptimizerStepOp>(op))
      update.setWorker(
          layout.workerOf(update.getPipeline(), update.getStage()));
  }

  const Layout &layout;
  schedule::ActionIds ids;
  Block &block;
  std::vector<ActionOp> actions;
  /// The first op that needs all actions done.
  Operation *anchor = nullptr;
  /// The sum so far of each replica, and the zero where it begins.
  std::vector<Value> sums;
  std::vector<ZeroOp> zeros;
};

struct Schedule : impl::SchedulePassBase<Schedule> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(run(pipeline)))
        return signalPassFailure();
  }

  LogicalResult run(PipelineOp pipeline) {
    FailureOr<schedule::Problem> problem = problemOf(pipeline);
    if (failed(problem))
      return failure();
    FailureOr<StepOp> step = stepOf(pipeline);
    if (failed(step))
      return failure();
    FailureOr<Layout> layout = layoutOf(pipeline);
    FailureOr<SchemeChoice> choice = schemeOf(pipeline);
    if (failed(choice))
      return failure();
    const schedule::Scheme &scheme = *choice->scheme;
    if (std::string error =
            schedule::checkPipelines(scheme, *problem, choice->options);
        !error.empty())
      return pipeline.emitOpError("schedule \"")
             << scheme.name << "\": " << error << ": run chimera-partition";
    schedule::Schedule schedule =
        schedule::makeSchedule(scheme, *problem, choice->options);
    if (failed(report(pipeline, Twine("schedule \"") + scheme.name + "\": ",
                      schedule::verify(*problem, schedule))))
      return failure();
    Reorder reorder(*layout, *problem, step->getBody().front());
    if (failed(reorder.collect()))
      return failure();
    reorder.apply(schedule,
                  globalOrder(schedule::simulate(*problem, schedule)));
    return success();
  }
};

} // namespace
} // namespace chimera
