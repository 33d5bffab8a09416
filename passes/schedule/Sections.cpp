//===- Sections.cpp - Prologue, step and epilogue -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Sections.h"

#include "compiler/schedule/model/Steps.h"
#include "dialect/LoopCarried.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/schedule/ScheduledProblem.h"

using namespace mlir;

namespace chimera {

int32_t versionInSection(const schedule::Problem &problem, int32_t stage,
                         int32_t microBatch) {
  // The result must be the one of the steady state. In the first steps the
  // result would be another one, because every action reads the initial
  // version. So begin at a later step, before which all stages have had
  // updates. No stage is more than one step ahead (schedule::check), so the
  // third step is late enough.
  int64_t first = 2 * static_cast<int64_t>(problem.microBatches());
  return static_cast<int32_t>(
      schedule::weightVersion(problem, stage, first + microBatch) -
      schedule::weightVersion(problem, stage, first));
}

namespace {

/// The op that posted or started the transfer of `value`, or null if `value`
/// does not come from a transfer.
Operation *transferOf(Value value) {
  auto wait = value.getDefiningOp<WaitOp>();
  if (!wait)
    return nullptr;
  Value transfer = wait.getTransfer();
  if (auto group = transfer.getDefiningOp<GroupOp>())
    transfer = group.getPosts().front().getTerminator()->getOperand(
        cast<OpResult>(transfer).getResultNumber());
  return transfer.getDefiningOp();
}

class SectionVerifier {
public:
  SectionVerifier(const schedule::Problem &problem, SectionKind section,
                  Block &block, ArrayRef<int32_t> stages)
      : problem(problem), section(section), block(block), stages(stages),
        microBatches(problem.microBatches()), replicas(problem.stages.size()) {}

  LogicalResult run() {
    Operation *yield = block.getTerminator();
    SmallVector<LoopCarried> arguments =
        *loopCarriedOf(block.getArgumentTypes());
    SmallVector<LoopCarried> results = *loopCarriedOf(yield->getOperandTypes());
    if (arguments.size() != stages.size() || results.size() != stages.size())
      return report(block.getParentOp(), "expected the loop-carried values of ")
             << stages.size() << " replicas, got those of " << arguments.size()
             << " as arguments and of " << results.size() << " yielded";
    for (auto [index, s] : llvm::enumerate(stages)) {
      replicas[s].isHere = true;
      replicas[s].arguments = arguments[index];
      replicas[s].results = results[index];
      if (failed(readArguments(s)))
        return failure();
    }
    for (Operation &op : block.without_terminator())
      visit(op);
    for (int32_t s : stages)
      verifyYielded(s, yield->getOperands());
    return success(!isBroken);
  }

private:
  struct Replica {
    bool isHere = false;
    LoopCarried arguments, results;
    SmallVector<Value> weights; ///< versions, oldest first
    Value state;
    int32_t updates = 0;
    /// By micro-batch of the section. The outputs are activations.
    std::vector<Value> inputs, stashes, outputs;
  };

  InFlightDiagnostic report(Operation *op, const Twine &message) {
    isBroken = true;
    return op->emitOpError(message);
  }

  int32_t ahead(int32_t s) const { return forwardsAhead(problem, s); }
  bool isRecomputed(int32_t s) const {
    return problem.recomputeOf(s) != schedule::Recompute::None;
  }

  /// Checks and records the arguments of the section that belong to stage `s`.
  /// A prologue makes the versions of the weights itself, all equal. So for a
  /// prologue, checks the values that it yields instead.
  LogicalResult readArguments(int32_t s) {
    bool first = section == SectionKind::Prologue;
    Replica &replica = replicas[s];
    const LoopCarried &from = first ? replica.results : replica.arguments;
    int32_t kept = schedule::weightVersions(problem, s);
    int32_t stashes = isRecomputed(s) ? 0 : ahead(s);
    int32_t activations = s > 0 ? ahead(s) - stashes + 1 : 0;
    if (static_cast<int32_t>(from.versions) != kept ||
        static_cast<int32_t>(from.stashes) != stashes ||
        static_cast<int32_t>(from.activations) != activations)
      return report(block.getParentOp(), "expected stage ")
             << s << " to carry over " << kept << " versions of its weights, "
             << stashes << " stashes and " << activations << " activations";
    ValueRange values = first ? ValueRange(block.getTerminator()->getOperands())
                              : ValueRange(block.getArguments());
    llvm::append_range(replica.weights, values.slice(from.first, kept));
    replica.state = block.getArgument(replica.arguments.state());
    size_t count = microBatches + replicas.size();
    replica.inputs.resize(count);
    replica.stashes.resize(count);
    replica.outputs.resize(count);
    if (first) {
      verifyCopies(s, block.getArgument(replica.arguments.first));
      return success();
    }
    for (int32_t m = 0; m < stashes; ++m)
      replica.stashes[m] = values[from.firstStash() + m];
    for (int32_t k = 0; k < activations; ++k)
      replica.inputs[ahead(s) + 1 - activations + k] =
          values[from.firstActivation() + k];
    return success();
  }

  void verifyCopies(int32_t s, Value weights) {
    for (Value version : replicas[s].weights) {
      auto copy = version.getDefiningOp<CopyOp>();
      if (version == replicas[s].weights.back()
              ? version != weights
              : !copy || copy.getWeights() != weights ||
                    copy.getPipeline() != 0 ||
                    static_cast<int32_t>(copy.getStage()) != s)
        report(block.getParentOp(),
               "expected it to yield copies of the weights of stage ")
            << s << ", and these weights last";
    }
  }

  /// The values of stage `s`, or null if the section does not have them.
  Replica *find(int64_t s) {
    return s < static_cast<int64_t>(replicas.size()) && replicas[s].isHere
               ? &replicas[s]
               : nullptr;
  }

  void visit(Operation &op) {
    if (auto update = dyn_cast<OptimizerStepOp>(op))
      return visit(update);
    auto action = dyn_cast<ActionOp>(op);
    if (!action)
      return;
    Replica *replica = find(action.getStage());
    if (!replica || action.getMicroBatch() >= replica->stashes.size())
      return;
    auto s = static_cast<int32_t>(action.getStage());
    auto m = static_cast<int32_t>(action.getMicroBatch());
    auto index = static_cast<size_t>(versionInSection(problem, s, m));
    for (Value operand : op.getOperands())
      if (isa<WeightsType>(operand.getType()) &&
          (index >= replica->weights.size() ||
           operand != replica->weights[index]))
        report(&op, "expected it to read version ")
            << index << " of the weights of stage " << s
            << ", counted from the oldest argument";
    visitStashes(action, replica->stashes[m]);
    if (isa<ForwardOp, RecomputeOp>(op))
      visitInput(action, s, m);
  }

  /// Checks that `action` uses `stash`, the current stash of its micro-batch.
  /// If `action` makes a stash, sets `stash` to it: forwards and recomputes
  /// make one, and an input gradient replaces the stash by a weight stash.
  void visitStashes(ActionOp action, Value &stash) {
    for (Value operand : action->getOperands())
      if (isStash(operand.getType()) && operand != stash)
        report(action, "expected the stash of micro-batch ")
            << action.getMicroBatch() << " on stage " << action.getStage();
    for (Value result : action->getResults())
      if (isStash(result.getType()))
        stash = result;
  }

  void visitInput(ActionOp action, int32_t s, int32_t m) {
    Replica &replica = replicas[s];
    if (isa<ForwardOp>(action))
      replica.outputs[m] = action->getResult(0);
    if (s == 0)
      return;
    Value input = action->getOperand(0);
    Value &known = replica.inputs[m];
    if (known ? input != known : !isActivation(input, s - 1, m))
      report(action, "expected the activation of micro-batch ")
          << m << " from stage " << s - 1;
    known = input;
  }

  /// True if `value` is the activation that stage `s` made for micro-batch `m`
  /// of the section.
  bool isActivation(Value value, int32_t s, int32_t m) {
    if (Replica *replica = find(s); replica && replica->outputs[m] == value)
      return true;
    auto receive = dyn_cast_or_null<PostReceiveOp>(transferOf(value));
    return receive && static_cast<int32_t>(receive.getStage()) == s &&
           static_cast<int32_t>(receive.getMicroBatch()) == m;
  }

  void visit(OptimizerStepOp update) {
    Replica *replica = find(update.getStage());
    if (!replica)
      return;
    uint32_t s = update.getStage();
    if (update.getWeights() != replica->weights.back() ||
        update.getState() != replica->state)
      report(update, "expected it to update the newest weights and the "
                     "optimizer state of stage ")
          << s;
    replica->weights.push_back(update.getNewWeights());
    replica->state = update.getNewState();
    auto next = static_cast<uint32_t>(replica->updates++);
    bool each = problem.updates == schedule::Updates::EachMicroBatch;
    std::optional<uint32_t> label = update.getMicroBatch();
    if (!each && label)
      report(update, "expected no micro-batch, as it takes the gradient of "
                     "all");
    else if (each && label != next)
      report(update, "expected the update of micro-batch ") << next << " next";
    else if (each && !takesGradientOf(update.getGradient(), s, next))
      report(update, "expected the gradient of micro-batch ") << next;
  }

  static bool takesGradientOf(Value gradient, uint32_t s, uint32_t m) {
    if (auto reduce = gradient.getDefiningOp<AllReduceOp>())
      gradient = reduce.getContributions().front();
    if (auto join = gradient.getDefiningOp<JoinOp>())
      gradient = join.getPieces().front();
    if (auto start = dyn_cast_or_null<AllReduceStartOp>(transferOf(gradient)))
      gradient = start.getContributions().front();
    if (auto split = gradient.getDefiningOp<SplitOp>())
      gradient = split.getGradient();
    auto action = gradient.getDefiningOp<ActionOp>();
    return action && action.getStage() == s && action.getMicroBatch() == m;
  }

  /// Checks that all updates of the section exist, and that the section yields
  /// the newest weights and the values in flight.
  void verifyYielded(int32_t s, ValueRange yielded) {
    bool first = section == SectionKind::Prologue;
    bool last = section == SectionKind::Epilogue;
    const Replica &replica = replicas[s];
    const LoopCarried &results = replica.results;
    bool each = problem.updates == schedule::Updates::EachMicroBatch;
    int32_t updates = first ? 0 : each ? microBatches : 1;
    if (replica.updates != updates)
      report(block.getParentOp(), "expected ")
          << updates << " updates of stage " << s << ", got "
          << replica.updates;
    auto expect = [&](unsigned at, bool good, const char *what) {
      if (!good)
        report(block.getTerminator(), "expected value ")
            << at << " to be " << what << " of stage " << s;
    };
    ArrayRef<Value> weights =
        ArrayRef(replica.weights).take_back(results.versions);
    for (auto [k, version] : llvm::enumerate(weights))
      expect(results.first + k, yielded[results.first + k] == version,
             "one of the newest weights");
    expect(results.state(), yielded[results.state()] == replica.state,
           "the optimizer state");
    if (last)
      return;
    // The first micro-batch that is in flight at the end of the section.
    int32_t next = first ? 0 : microBatches;
    constexpr const char *kStash = "the stash in flight, oldest first,";
    constexpr const char *kInput = "the activation in flight, oldest first,";
    for (unsigned k = 0; k < results.stashes; ++k)
      expect(results.firstStash() + k,
             yielded[results.firstStash() + k] == replica.stashes[next + k],
             kStash);
    if (results.activations == 0)
      return;
    unsigned sent = results.end() - 1;
    for (unsigned at = results.firstActivation(); at < sent; ++at)
      expect(at,
             yielded[at] ==
                 replica.inputs[next + at - results.firstActivation()],
             kInput);
    expect(sent, isActivation(yielded[sent], s - 1, next + ahead(s)),
           "the activation that was sent last, for the next forward");
  }

  const schedule::Problem &problem;
  SectionKind section;
  Block &block;
  ArrayRef<int32_t> stages; ///< stages whose replicas the block has
  int32_t microBatches;
  std::vector<Replica> replicas; ///< by stage
  bool isBroken = false;
};

/// Verifies the sections in `blocks`, which have the replicas of `stages`.
LogicalResult verifySections(const schedule::Problem &problem,
                             ArrayRef<Block *> blocks,
                             ArrayRef<int32_t> stages) {
  if (blocks.size() != 3)
    return blocks.front()->getParentOp()->emitOpError(
        "expected a prologue and an epilogue around the step, as steps "
        "overlap: run chimera-unroll first");
  constexpr SectionKind kAll[] = {SectionKind::Prologue, SectionKind::Step,
                                  SectionKind::Epilogue};
  LogicalResult result = success();
  for (auto [section, block] : llvm::zip(kAll, blocks))
    if (failed(SectionVerifier(problem, section, *block, stages).run()))
      result = failure();
  return result;
}

/// The stages of the pipeline's single direction that a worker has.
FailureOr<SmallVector<int32_t>> stagesOf(WorkerOp worker, int32_t count) {
  SmallVector<int32_t> stages;
  ArrayRef<int32_t> holds = worker.getHolds();
  for (size_t i = 0; i < holds.size(); i += 2) {
    if (holds[i] != 0 || holds[i + 1] < 0 || holds[i + 1] >= count)
      return worker.emitOpError("expected replicas of pipeline 0 with stages "
                                "below ")
             << count << ", as steps overlap";
    stages.push_back(holds[i + 1]);
  }
  return stages;
}

} // namespace

LogicalResult verifySections(PipelineOp pipeline) {
  if (!schedule::stepsOverlap(updatesOf(pipeline)))
    return success();
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  return success(succeeded(of) &&
                 succeeded(verifySections(pipeline, of->problem)));
}

LogicalResult verifySections(PipelineOp pipeline,
                             const schedule::Problem &problem) {
  if (!schedule::stepsOverlap(problem.updates))
    return success();
  auto count = static_cast<int32_t>(problem.stages.size());
  Block &body = pipeline.getBody().front();
  SmallVector<Block *, 3> blocks;
  for (auto section : body.getOps<SectionOp>())
    blocks.push_back(&section.getBody().front());
  if (!blocks.empty())
    return verifySections(problem, blocks,
                          llvm::to_vector(llvm::seq<int32_t>(0, count)));
  LogicalResult result = success();
  for (auto worker : body.getOps<WorkerOp>()) {
    FailureOr<SmallVector<int32_t>> stages = stagesOf(worker, count);
    if (failed(stages) ||
        failed(verifySections(problem, worker.getSections(), *stages)))
      result = failure();
  }
  return result;
}

} // namespace chimera
