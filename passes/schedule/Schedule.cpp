//===- Schedule.cpp - The order of actions --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "passes/Passes.h"
#include "passes/Prefetch.h"
#include "passes/describe/Bridge.h"
#include "passes/describe/Orders.h"
#include "passes/schedule/Reordering.h"
#include "passes/schedule/ScheduleAnalysis.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"

namespace {

/// Puts the ops of a section's block into the order of a schedule.
class Reorder {
public:
  /// `offset` is the number of the first micro-batch of the step to which the
  /// section belongs.
  Reorder(const Layout &layout, const schedule::Problem &problem, Block &block,
          int32_t offset)
      : layout(layout), ids(problem), block(block), offset(offset),
        updates(problem.updates),
        oneSum(updates != schedule::Updates::EachMicroBatch),
        sums(layout.directions.size() * layout.stages.size()) {}

  /// Fails with a diagnostic if the section does not have the ops that `unroll`
  /// makes: the actions of `order`, with their loads, reductions and updates.
  LogicalResult collect(const schedule::Schedule &schedule,
                        ArrayRef<schedule::ActionRef> order) {
    actions.resize(ids.count());
    ordered.reserve(order.size());
    for (Operation &op : block) {
      prefetchNext(op);
      if (auto action = dyn_cast<ActionOp>(op)) {
        if (failed(collect(action)))
          return failure();
        continue;
      }
      if (!isa<LoadOp, CopyOp, SplitOp, JoinOp, AllReduceOp, SquaredNormOp,
               OptimizerStepOp, YieldOp>(op))
        return op.emitOpError("expected an op of an unrolled step");
      if (!anchor && !mayBeBetweenActions(op, updates))
        anchor = &op;
      if (failed(collect(&op)))
        return failure();
    }
    for (const schedule::ActionRef &ref : order) {
      ActionOp op = actions[*ids.find(schedule.workers[ref.worker][ref.index])];
      if (!op)
        return block.getParentOp()->emitOpError(
            "expected every action of the step: run chimera-unroll first");
      ordered.push_back(op);
    }
    if (found != order.size())
      return block.getParentOp()->emitOpError(
          "expected no action of another step: run chimera-unroll first");
    return success();
  }

  void apply(const schedule::Schedule &schedule,
             ArrayRef<schedule::ActionRef> order) {
    for (auto [i, ref] : llvm::enumerate(order)) {
      ActionOp op = ordered[i];
      if (i + 8 < ordered.size()) {
        prefetch(ordered[i + 8]);
        prefetchProducers(ordered[i + 4]);
      }
      op.setWorker(ref.worker);
      const bool joined =
          schedule.workers[ref.worker][ref.index].joinedWithNext;
      if (auto forward = dyn_cast<ForwardOp>(op.getOperation()))
        forward.setJoined(joined);
      else if (auto weight = dyn_cast<WeightGradientOp>(op.getOperation()))
        weight.setJoined(joined);
      if (schedule.hasSlots())
        op.setSlot(schedule.slots[ref.worker][ref.index]);
      moveHere(op, ref.worker);
    }
    for (Operation &op : llvm::make_range(anchor->getIterator(), block.end()))
      finish(&op);
  }

private:
  /// Checks an op that is not an action. If it is a copy, sets its worker.
  LogicalResult collect(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](CopyOp copy) {
          if (failed(checkReplica(copy)))
            return failure();
          copy.setWorker(layout.workerOf(copy.getPipeline(), copy.getStage()));
          return success();
        })
        .Case<SplitOp, JoinOp, SquaredNormOp, OptimizerStepOp>(
            [&](auto placed) { return checkReplica(placed); })
        .Default([](Operation *) { return success(); });
  }

  LogicalResult collect(ActionOp action) {
    schedule::Action label = actionOf(action);
    label.microBatch += offset;
    std::optional<int64_t> id = ids.find(label);
    if (!id || actions[*id])
      return action.emitOpError("expected each action of the step once");
    actions[*id] = action;
    ++found;
    if (!oneSum && action.getSumOperand())
      return action.emitOpError("expected no sum to add to, as each "
                                "micro-batch has an update of its own: run "
                                "chimera-unroll first");
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
    return sums[replicaIndex(layout, pipeline, stage)];
  }

  /// Moves `op` and the loads that it needs to the end of the new order, which
  /// is right before `anchor`. Then makes `op` add its gradient to the current
  /// sum of its replica.
  void moveHere(ActionOp op, int32_t worker) {
    for (Value operand : op->getOperands())
      if (auto load = operand.getDefiningOp<LoadOp>()) {
        load.setWorker(worker);
        load->moveBefore(anchor);
      }
    op->moveBefore(anchor);
    Value newSum = op.getNewSum();
    if (!newSum)
      return;
    if (!oneSum)
      return follow(newSum, worker);
    Value &sum = sumOf(op.getPipeline(), op.getStage());
    op.getSumMutable().assign(sum ? ValueRange(sum) : ValueRange());
    sum = newSum;
  }

  /// Moves the all-reduce of `sum`, and the update that uses its result, to the
  /// end of the new order, which is right before `anchor`.
  void follow(Value sum, int32_t worker) {
    for (Operation *op : reductionAndUpdateOf(sum)) {
      op->moveBefore(anchor);
      if (auto update = dyn_cast<OptimizerStepOp>(op))
        update.setWorker(worker);
    }
  }

  /// Completes an op that is after the actions: sets its worker, and makes it
  /// use the complete sums of gradients.
  void finish(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto producer = operand.get().getDefiningOp<ActionOp>();
      if (producer && producer.getNewSum() == operand.get())
        operand.set(sumOf(producer.getPipeline(), producer.getStage()));
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case<SplitOp, JoinOp, SquaredNormOp, OptimizerStepOp>(
            [&](auto placed) {
              placed.setWorker(
                  layout.workerOf(placed.getPipeline(), placed.getStage()));
            });
  }

  const Layout &layout;
  schedule::ActionIds ids;
  Block &block;
  int32_t offset;
  schedule::Updates updates;
  /// True if all backwards of a replica add to one sum. False if each backward
  /// has a sum of its own, with an update after it.
  bool oneSum;
  std::vector<ActionOp> actions; ///< by id
  std::vector<ActionOp> ordered; ///< in their new order
  size_t found = 0;              ///< number of actions found
  /// The first op that must be after all actions.
  Operation *anchor = nullptr;
  std::vector<Value> sums; ///< current sums by replica, at first null
};

/// If steps overlap, the loop-carried values are right only if every early
/// recompute exists and is directly before its backward. Returns a violation
/// for each worker whose order differs from this rule, at the first action that
/// differs.
std::vector<schedule::Violation>
misplacedRecomputes(const schedule::Problem &problem,
                    const schedule::Schedule &schedule) {
  std::vector<schedule::Violation> violations;
  if (!schedule::stepsOverlap(problem.updates) || problem.recompute.empty())
    return violations;
  schedule::Schedule usual =
      schedule::insertRecompute(problem, schedule::removeRecompute(schedule));
  for (auto [w, row] : llvm::enumerate(schedule.workers)) {
    const std::vector<schedule::Action> &expected = usual.workers[w];
    size_t i = 0;
    while (i < row.size() && i < expected.size() && row[i] == expected[i])
      ++i;
    if (i < expected.size())
      violations.push_back({schedule::Violation::Constraint::Order,
                            "expected every recompute directly before its "
                            "backward if steps overlap: " +
                                schedule::describe(problem, expected[i]) +
                                " here",
                            static_cast<int32_t>(w),
                            static_cast<int32_t>(std::min(i, row.size() - 1))});
  }
  return violations;
}

struct Schedule : impl::SchedulePassBase<Schedule> {
  void runOnOperation() override {
    bool recomputes = false;
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(run(pipeline, getChildAnalysis<ScheduleAnalysis>(pipeline),
                     recomputes)))
        return signalPassFailure();
    if (!recomputes)
      markAnalysesPreserved<ScheduleAnalysis>();
  }

  /// Sets `anyRecomputes` to true if the order has recomputes.
  static LogicalResult run(PipelineOp pipeline, ScheduleAnalysis &analysis,
                           bool &anyRecomputes) {
    FailureOr<Layout> layout = layoutOf(pipeline);
    if (failed(layout))
      return failure();
    FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
    if (failed(sections))
      return failure();
    if (failed(requireOrders(pipeline)))
      return failure();
    const ScheduledProblem *of = analysis.get();
    if (!of)
      return failure();
    std::vector<schedule::Violation> violations = analysis.violations();
    if (violations.empty())
      violations = misplacedRecomputes(of->problem, of->schedule);
    if (!violations.empty())
      return report(*readOrders(pipeline, of->problem), violations);
    if (of->problem.recompute.empty()) {
      eraseOrders(pipeline);
      return reorder(*layout, *sections, pipeline, *of, analysis.timing());
    }
    // Leave recomputes out here. chimera-recompute inserts them later.
    anyRecomputes = true;
    ScheduledProblem without{of->problem,
                             schedule::removeRecompute(of->schedule)};
    without.problem.recompute.clear();
    return reorder(*layout, *sections, pipeline, without,
                   schedule::simulate(without.problem, without.schedule));
  }

  static LogicalResult reorder(const Layout &layout,
                               ArrayRef<SectionOp> sections,
                               PipelineOp pipeline, const ScheduledProblem &of,
                               const schedule::Timing &timing) {
    const auto &[problem, schedule] = of;
    std::vector<std::vector<schedule::ActionRef>> orders =
        splitBySection(schedule::inOrderOfStarts(timing), schedule);
    if (orders.size() != sections.size())
      return SectionOp(sections.front())->emitOpError("expected ")
             << (orders.size() > 1 ? "a prologue, a step and an epilogue"
                                   : "a step alone")
             << ", as updates(" << stringifyUpdates(pipeline.getUpdates())
             << ") requires: run chimera-unroll first";
    for (auto [section, order] : llvm::zip(sections, orders)) {
      int32_t offset = isa<EpilogueOp>(section) ? problem.microBatches() : 0;
      Reorder reorder(layout, problem, SectionOp(section).getBody().front(),
                      offset);
      if (failed(reorder.collect(schedule, order)))
        return failure();
      reorder.apply(schedule, order);
    }
    return success();
  }
};

} // namespace
} // namespace chimera
