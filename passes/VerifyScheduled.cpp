//===- VerifyScheduled.cpp - A step is a valid schedule -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/State.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/Passes.h.inc"

namespace {

/// True if `value` is the whole sum of a replica's weight gradients: made by
/// one of its actions and added to no further.
bool isSumOf(Value value, uint32_t pipeline, uint32_t stage) {
  auto action = value.getDefiningOp<ActionOp>();
  if (!action || !action.getAccumulator() || action.getPipeline() != pipeline ||
      action.getStage() != stage)
    return false;
  return llvm::none_of(value.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<ActionOp>(use.getOwner());
    return user && user.getAccumulator() == &use;
  });
}

/// The all-reduce takes the whole sum of each pipeline, from all copies.
LogicalResult verifyAllReduce(AllReduceOp reduce, PipelineOp pipeline,
                              const Layout &layout) {
  if (reduce.getWidth() != pipeline.getDataParallel())
    return reduce.emitOpError("expected width ")
           << pipeline.getDataParallel() << ", the pipeline's data_parallel, "
           << "got " << reduce.getWidth();
  if (isa<LossType>(reduce.getSummands().front().getType()))
    return success();
  if (reduce.getSummands().size() != layout.directions.size())
    return reduce.emitOpError("expected a summand of each of ")
           << layout.directions.size() << " pipelines, got "
           << reduce.getSummands().size();
  for (auto [p, summand] : llvm::enumerate(reduce.getSummands()))
    if (!isSumOf(summand, p, reduce.getStage()))
      return reduce.emitOpError("expected summand ")
             << p << " to be the whole sum of pipeline " << p << ", stage "
             << reduce.getStage();
  return success();
}

/// Each optimizer step takes a gradient that every replica's sum has entered.
LogicalResult verifyUpdate(OptimizerStepOp update, bool replicated) {
  Value gradient = update.getGradient();
  auto reduce = gradient.getDefiningOp<AllReduceOp>();
  if (replicated && !reduce)
    return update.emitOpError("expected a reduced gradient, got that of one "
                              "replica");
  bool own = reduce
                 ? reduce.getStage() == update.getStage() &&
                       cast<OpResult>(gradient).getResultNumber() ==
                           update.getPipeline()
                 : isSumOf(gradient, update.getPipeline(), update.getStage());
  if (!own)
    return update.emitOpError("expected the gradient of pipeline ")
           << update.getPipeline() << ", stage " << update.getStage();
  return success();
}

LogicalResult verifyReduced(PipelineOp pipeline, Block &section,
                            const Layout &layout) {
  bool replicated = layout.directions.size() * pipeline.getDataParallel() > 1;
  LogicalResult result = success();
  for (Operation &op : section) {
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      if (failed(verifyAllReduce(reduce, pipeline, layout)))
        result = failure();
    if (auto update = dyn_cast<OptimizerStepOp>(op))
      if (failed(verifyUpdate(update, replicated)))
        result = failure();
  }
  return result;
}

/// Looks at one section of steps that overlap: which versions of weights are
/// read, and what is handed on.
class SectionVerifier {
public:
  SectionVerifier(PipelineOp pipeline, SectionOp section, const Layout &layout)
      : updates(updatesOf(pipeline)), section(section),
        stages(static_cast<int32_t>(layout.stages.size())),
        microBatches(static_cast<int32_t>(pipeline.getMicroBatches())),
        replicas(stages) {}

  LogicalResult run() {
    Block &block = section.getBody().front();
    Operation *yield = block.getTerminator();
    SmallVector<Carried> taken = *carriedBy(block.getArgumentTypes());
    SmallVector<Carried> left = *carriedBy(yield->getOperandTypes());
    bool first = isa<PrologueOp>(section), last = isa<EpilogueOp>(section);
    // The prologue makes the versions that it yields, all equal.
    for (int32_t s = 0; s < stages; ++s) {
      const Carried &from = first ? left[s] : taken[s];
      ValueRange values = first ? ValueRange(yield->getOperands())
                                : ValueRange(block.getArguments());
      int32_t kept = versionsKept(updates, stages, s);
      int32_t ahead = forwardsAhead(stages, s);
      if (static_cast<int32_t>(from.versions) != kept ||
          static_cast<int32_t>(from.stashes) != ahead ||
          from.activation != (s > 0)) {
        report(section, "expected stage ")
            << s << " to hand on " << kept << " versions of its weights, "
            << ahead << " stashes and " << (s > 0 ? "one" : "no")
            << " activation";
        return failure();
      }
      Replica &replica = replicas[s];
      llvm::append_range(replica.weights, values.slice(from.first, kept));
      replica.state = block.getArgument(taken[s].state());
      replica.stashes.resize(microBatches + ahead);
      replica.outputs.resize(microBatches + stages);
      if (first)
        verifyCopies(s, block.getArgument(taken[s].first));
      else
        for (int32_t m = 0; m < ahead; ++m)
          replica.stashes[m] = block.getArgument(from.firstStash() + m);
      if (!first && s > 0)
        replica.input = block.getArgument(from.lastActivation());
    }
    for (Operation &op : block.without_terminator())
      visit(op);
    for (int32_t s = 0; s < stages; ++s)
      verifyLeft(s, left[s], yield->getOperands(), first ? 0 : microBatches,
                 last);
    return success(!failed);
  }

private:
  struct Replica {
    SmallVector<Value> weights; ///< versions, oldest first
    Value state;
    /// By micro-batch of the section.
    std::vector<Value> stashes, outputs;
    Value input; ///< taken from the section before
  };

  InFlightDiagnostic report(Operation *op, const Twine &message) {
    failed = true;
    return op->emitOpError(message);
  }

  void verifyCopies(int32_t s, Value weights) {
    for (Value version : replicas[s].weights) {
      auto copy = version.getDefiningOp<CopyOp>();
      if (version == replicas[s].weights.back()
              ? version != weights
              : !copy || copy.getWeights() != weights)
        report(section, "expected it to yield copies of the weights of stage ")
            << s << " and then these weights";
    }
  }

  void visit(Operation &op) {
    if (auto update = dyn_cast<OptimizerStepOp>(op))
      return visit(update);
    auto action = dyn_cast<ActionOp>(op);
    if (!action)
      return;
    auto s = static_cast<int32_t>(action.getStage());
    auto m = static_cast<int32_t>(action.getMicroBatch());
    // Others the schedule library reports.
    if (s >= stages || m >= static_cast<int32_t>(replicas[s].stashes.size()))
      return;
    Replica &replica = replicas[s];
    auto index = static_cast<size_t>(versionRead(updates, m, microBatches));
    for (Value operand : op.getOperands())
      if (isa<WeightsType>(operand.getType()) &&
          (index >= replica.weights.size() ||
           operand != replica.weights[index]))
        report(&op, "expected it to read version ")
            << index << " of the weights of stage " << s
            << ", counted from the oldest that the section takes";
    visitStashes(action, replica.stashes[m]);
    if (isa<ForwardOp>(op))
      visitForward(action, m);
  }

  /// A forward leaves a stash, and the others use and replace it.
  void visitStashes(ActionOp action, Value &stash) {
    for (Value operand : action->getOperands())
      if (isa<StashType>(operand.getType()) && operand != stash)
        report(action, "expected the stash that micro-batch ")
            << action.getMicroBatch() << " left on stage " << action.getStage();
    for (Value result : action->getResults())
      if (isa<StashType>(result.getType()))
        stash = result;
  }

  void visitForward(ActionOp action, int32_t m) {
    auto s = static_cast<int32_t>(action.getStage());
    replicas[s].outputs[m] = action->getResult(0);
    if (s == 0)
      return;
    bool isFirst = m == forwardsAhead(stages, s) && replicas[s].input;
    Value input = isFirst ? replicas[s].input : replicas[s - 1].outputs[m];
    if (action->getOperand(0) != input)
      report(action, "expected the activation of micro-batch ")
          << m << " from stage " << s - 1;
  }

  void visit(OptimizerStepOp update) {
    auto s = static_cast<int32_t>(update.getStage());
    if (s >= stages)
      return;
    Replica &replica = replicas[s];
    if (update.getWeights() != replica.weights.back() ||
        update.getState() != replica.state)
      report(update, "expected it to update the newest weights and the "
                     "optimizer state of stage ")
          << s;
    replica.weights.push_back(update.getNewWeights());
    replica.state = update.getNewState();
    bool each = updates == schedule::Updates::EachMicroBatch;
    if (each != update.getMicroBatch().has_value())
      report(update, "expected ")
          << (each ? "the micro-batch whose gradient it takes"
                   : "no micro-batch, as it takes the gradient of all");
    else if (each &&
             !takesGradientOf(update.getGradient(), s, *update.getMicroBatch()))
      report(update, "expected the gradient of micro-batch ")
          << *update.getMicroBatch();
  }

  static bool takesGradientOf(Value gradient, int32_t s, uint32_t m) {
    if (auto reduce = gradient.getDefiningOp<AllReduceOp>())
      gradient = reduce.getSummands().front();
    auto action = gradient.getDefiningOp<ActionOp>();
    return action && static_cast<int32_t>(action.getStage()) == s &&
           action.getMicroBatch() == m;
  }

  /// What is handed on is what is newest, and in flight from micro-batch `next`
  /// on.
  void verifyLeft(int32_t s, const Carried &left, ValueRange yielded,
                  int32_t next, bool last) {
    Operation *yield = section.getBody().front().getTerminator();
    const Replica &replica = replicas[s];
    int32_t ahead = forwardsAhead(stages, s);
    SmallVector<Value> expected(
        ArrayRef(replica.weights).take_back(left.versions));
    expected.push_back(replica.state);
    for (int32_t m = next; !last && m < next + ahead; ++m)
      expected.push_back(replica.stashes[m]);
    if (!last && s > 0)
      expected.push_back(replicas[s - 1].outputs[next + ahead]);
    for (auto [i, value] : llvm::enumerate(expected))
      if (yielded[left.first + i] != value)
        report(yield, "expected value ")
            << left.first + i << " to be "
            << (i < left.versions    ? "one of the newest weights"
                : i == left.versions ? "the optimizer state"
                                     : "what is in flight, oldest first,")
            << " of stage " << s;
  }

  schedule::Updates updates;
  SectionOp section;
  int32_t stages, microBatches;
  std::vector<Replica> replicas;
  bool failed = false;
};

/// Where steps overlap, every action reads the version of weights that the rule
/// states, and sections hand on what the next expects: so a backward reads what
/// its forward read.
LogicalResult verifyVersions(PipelineOp pipeline, ArrayRef<SectionOp> sections,
                             const Layout &layout) {
  if (!stepsOverlap(sections))
    return success();
  if (failed(verifyReplicas(sections, layout)))
    return failure();
  LogicalResult result = success();
  for (SectionOp section : sections)
    if (failed(SectionVerifier(pipeline, section, layout).run()))
      result = failure();
  return result;
}

LogicalResult verify(PipelineOp pipeline) {
  FailureOr<schedule::Problem> problem = problemOf(pipeline);
  if (failed(problem))
    return failure();
  FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
  if (failed(schedule))
    return failure();
  FailureOr<SmallVector<SectionOp, 3>> sections = sectionsOf(pipeline);
  if (failed(sections))
    return failure();
  applyRecompute(pipeline, *schedule, *problem);
  FailureOr<Layout> layout = layoutOf(pipeline);
  LogicalResult result = success();
  for (SectionOp section : *sections)
    if (failed(verifyReduced(pipeline, section.getBody().front(), *layout)))
      result = failure();
  if (failed(verifyVersions(pipeline, *sections, *layout)))
    result = failure();
  if (failed(
          report(sections->front(), "", schedule::verify(*problem, *schedule))))
    return failure();
  return result;
}

struct VerifyScheduled : impl::VerifyScheduledPassBase<VerifyScheduled> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(verify(pipeline)))
        signalPassFailure();
  }
};

} // namespace
} // namespace chimera
