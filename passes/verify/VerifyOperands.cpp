//===- VerifyOperands.cpp - Checks of the operands of a step --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Verifier.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace chimera {

namespace {

enum class Role : uint8_t {
  Tokens,
  Labels,
  Activation,
  Loss,
  Stash,
  WeightStash,
  Gradient,
  Sum,
  Weights,
  State,
  NewWeights,
  NewState,
  Other
};

/// For one role, the words before and after the label in a message, and whether
/// values of this role belong to a micro-batch or only to a replica.
struct Words {
  const char *before, *after;
  bool ofMicroBatch;
};

const Words &wordsOf(Role role) {
  static constexpr Words all[] = {
      {"the tokens of ", "", true},
      {"the labels of ", "", true},
      {"the activation of ", "", true},
      {"the loss of ", "", true},
      {"the stash of ", "", true},
      {"the weight stash of ", "", true},
      {"the input gradient of ", "", true},
      {"the sum so far of ", "", false},
      {"the weights of ", " that the step takes", false},
      {"the optimizer state of ", " that the step takes", false},
      {"the updated weights of ", "", false},
      {"the updated optimizer state of ", "", false},
      {"something else", "", false},
  };
  return all[static_cast<size_t>(role)];
}

/// The role of a value, and the pipeline and stage to which the value belongs.
/// For some roles, the label also has the micro-batches, or the part of a
/// micro-batch, that the value covers.
struct Label {
  Role role = Role::Other;
  uint32_t pipeline = 0, stage = 0;
  uint32_t microBatch = 0, count = 1, part = 0, parts = 1;

  bool operator==(const Label &) const = default;

  std::string text() const {
    const Words &words = wordsOf(role);
    if (role == Role::Other)
      return words.before;
    std::string replica = "pipeline " + std::to_string(pipeline) + ", stage " +
                          std::to_string(stage);
    if (words.ofMicroBatch)
      replica = schedule::labelOf(
          {schedule::Kind::Forward, static_cast<int32_t>(pipeline),
           static_cast<int32_t>(stage), static_cast<int32_t>(microBatch),
           static_cast<uint16_t>(count), static_cast<uint8_t>(part),
           static_cast<uint8_t>(parts)});
    return words.before + replica + words.after;
  }
};

/// The label of a value with role `role`. The value belongs to `stage` and to
/// the pipeline of `action`. It covers the same micro-batches, or the same part
/// of a micro-batch, as `action`.
Label labelOf(Role role, ActionOp action, uint32_t stage) {
  return {role,
          action.getPipeline(),
          stage,
          action.getMicroBatch(),
          action.getCount(),
          action.getPart(),
          action.getParts()};
}

class OperandVerifier {
public:
  OperandVerifier(const schedule::Problem &problem, const Layout &layout,
                  bool overlaps)
      : layout(layout), pipelines(schedule::pipelineOfMicroBatch(problem)),
        stages(layout.stages.size()),
        eachMicroBatch(problem.updates == schedule::Updates::EachMicroBatch),
        overlaps(overlaps) {}

  void verify(SectionOp op) {
    Block &block = op.getBody().front();
    section = &block;
    recomputed.clear();
    kept.clear();
    taken.clear();
    updated.clear();
    reduction = nullptr;
    for (auto op : block.getOps<RecomputeOp>())
      recomputed.insert(pieceOf(op));
    for (Operation &op : block)
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](ActionOp action) { verifyAction(action); })
          .Case([&](AllReduceOp reduce) { verifyLosses(reduce); })
          .Case([&](OptimizerStepOp update) { verifyUpdate(update); })
          .Case([&](YieldOp yield) { verifyYield(yield); });
    // A prologue has no sum of losses: it ends before the step has all its
    // losses.
    if (!reduction && !isa<PrologueOp>(op) && ++found <= kMost)
      op.emitOpError("expected an all-reduce of the losses, got none");
  }

  LogicalResult finish(Operation *op) {
    if (found > kMost)
      op->emitOpError("and ") << found - kMost << " more";
    return success(found == 0);
  }

private:
  static constexpr size_t kMost = 20;

  /// A part of a micro-batch, with its stage. Exactly one backward covers it.
  using Piece = std::pair<uint64_t, uint32_t>;
  static Piece pieceOf(ActionOp op) {
    return {uint64_t{op.getStage()} << 32 | op.getMicroBatch(), op.getPart()};
  }

  /// True if the replica that `op` names exists. The schedule library reports
  /// actions of other replicas.
  template <typename Op> bool isKnown(Op op) const {
    return op.getPipeline() < layout.directions.size() &&
           op.getStage() < stages;
  }

  /// True if values of the role, or values made from them, may be loop-carried.
  /// In this case, verifySections checks these values.
  static bool isLoopCarried(Role role) {
    return role == Role::Activation || role == Role::Stash ||
           role == Role::WeightStash || role == Role::Weights ||
           role == Role::State;
  }

  void expect(Operation *op, Value value, const Label &expected) {
    if (overlaps && isLoopCarried(expected.role))
      return;
    Label got = labelOfValue(value);
    if (got != expected && ++found <= kMost)
      op->emitOpError("expected ") << expected.text() << ", got " << got.text();
  }

  /// Like `expect`, for an operand of a recompute. The value may cover more
  /// micro-batches than the recompute, which uses only the share of its own
  /// micro-batch.
  void expectShare(Operation *op, Value value, Label expected) {
    Label got = labelOfValue(value);
    expected.part = 0;
    expected.parts = 1;
    if (got.microBatch <= expected.microBatch &&
        expected.microBatch - got.microBatch < got.count) {
      expected.microBatch = got.microBatch;
      expected.count = got.count;
    }
    expect(op, value, expected);
  }

  void verifyAction(ActionOp action) {
    if (!isKnown(action))
      return;
    llvm::TypeSwitch<Operation *>(action)
        .Case([&](ForwardOp op) {
          verifyForward(op);
          keepStashes(op);
        })
        .Case([&](RecomputeOp op) { verifyForward(op); })
        .Case([&](BackwardOp op) {
          verifyStash(op, op.getStash(), Role::Stash);
          verifyWeights(op);
          verifyGradient(op);
          verifySum(op);
        })
        .Case([&](InputGradientOp op) {
          verifyStash(op, op.getStash(), Role::Stash);
          verifyWeights(op);
          verifyGradient(op);
        })
        .Case([&](WeightGradientOp op) {
          verifyStash(op, op.getWeightStash(), Role::WeightStash);
          verifyWeights(op);
          verifySum(op);
        });
  }

  /// Checks a forward or a recompute.
  template <typename Op> void verifyForward(Op op) {
    auto take = [&](Value value, const Label &expected) {
      if constexpr (std::is_same_v<Op, RecomputeOp>)
        expectShare(op, value, expected);
      else
        expect(op, value, expected);
    };
    uint32_t s = op.getStage();
    ActionOp action = op;
    take(op.getInput(), s == 0 ? labelOf(Role::Tokens, action, 0)
                               : labelOf(Role::Activation, action, s - 1));
    verifyWeights(op);
    if (op.getLabels())
      take(op.getLabels(), labelOf(Role::Labels, action, s));
  }

  template <typename Op> void verifyWeights(Op op) {
    expect(op, op.getWeights(),
           {Role::Weights, op.getPipeline(), op.getStage()});
  }

  void verifyStash(ActionOp op, Value stash, Role role) {
    expect(op, stash, labelOf(role, op, op.getStage()));
  }

  template <typename Op> void verifyGradient(Op op) {
    Label label = labelOf(Role::Gradient, ActionOp(op), op.getStage() + 1);
    if (label.stage == stages)
      label = {Role::Loss, op.getPipeline(), op.getStage(), op.getMicroBatch()};
    expect(op, op.getOutputGradient(), label);
  }

  /// Checks the sum to which `op` adds its gradient. If each micro-batch has an
  /// update, there must be none: each backward begins a new sum.
  template <typename Op> void verifySum(Op op) {
    if (!op.getSum())
      return;
    if (eachMicroBatch) {
      if (++found <= kMost)
        op.emitOpError("expected no sum to add to, as each micro-batch has an "
                       "update of its own");
      return;
    }
    expect(op, op.getSum(), {Role::Sum, op.getPipeline(), op.getStage()});
    auto [entry, isFirst] = taken.try_emplace(op.getSum(), op);
    if (!isFirst && ++found <= kMost)
      refuseSecond(op, entry->second, "a sum of its own to add to");
  }

  static void refuseSecond(Operation *op, Operation *first, StringRef what) {
    InFlightDiagnostic error = op->emitOpError("expected ") << what;
    error.attachNote(first->getLoc()) << "the other one is here";
  }

  /// The losses must be in the order of micro-batches, because the all-reduce
  /// adds them in the order of its operands.
  void verifyLosses(AllReduceOp reduce) {
    if (!reduce.sumsLosses())
      return;
    if (reduction && ++found <= kMost)
      refuseSecond(reduce, reduction, "one all-reduce of the losses");
    reduction = reduce;
    if (reduce.getStage() + 1 != stages && ++found <= kMost)
      reduce.emitOpError("expected the losses of stage ")
          << stages - 1 << ", the last, got those of stage "
          << reduce.getStage();
    size_t count = reduce.getContributions().size();
    if (count != pipelines.size() && ++found <= kMost)
      reduce.emitOpError("expected the losses of ")
          << pipelines.size() << " micro-batches, got " << count;
    for (size_t m = 0; m < std::min(count, pipelines.size()); ++m)
      expect(reduce, reduce.getContributions()[m],
             {Role::Loss, static_cast<uint32_t>(pipelines[m]), stages - 1,
              static_cast<uint32_t>(m)});
  }

  void verifyUpdate(OptimizerStepOp update) {
    if (overlaps || !isKnown(update))
      return;
    verifyWeights(update);
    expect(update, update.getState(),
           {Role::State, update.getPipeline(), update.getStage()});
    if (eachMicroBatch)
      return;
    auto [entry, isFirst] =
        updated.try_emplace({update.getPipeline(), update.getStage()}, update);
    if (!isFirst && ++found <= kMost)
      refuseSecond(update, entry->second, "one update of its stage");
  }

  void verifyYield(YieldOp yield) {
    if (overlaps)
      return;
    for (auto [i, value] : llvm::enumerate(yield.getValues()))
      expect(yield, value, loopCarried(i, Role::NewWeights, Role::NewState));
  }

  /// The label of the i-th value that a step with a flush yields or has as
  /// argument. `weights` and `state` are the roles of such values.
  Label loopCarried(uint32_t i, Role weights, Role state) const {
    return {i % 2 == 0 ? weights : state, i / 2 / stages, i / 2 % stages};
  }

  Label labelOfValue(Value value) const {
    auto result = dyn_cast<OpResult>(value);
    if (!result) {
      auto argument = cast<BlockArgument>(value);
      return overlaps || argument.getOwner() != section
                 ? Label()
                 : loopCarried(argument.getArgNumber(), Role::Weights,
                               Role::State);
    }
    unsigned index = result.getResultNumber();
    return llvm::TypeSwitch<Operation *, Label>(result.getOwner())
        .Case([&](LoadOp op) {
          bool isTokens = isa<TokensType>(op.getType());
          return Label{isTokens ? Role::Tokens : Role::Labels, op.getPipeline(),
                       op.getStage(), op.getMicroBatch(), op.getCount()};
        })
        .Case([&](ForwardOp op) { return labelOfResult(op, index); })
        .Case([&](OptimizerStepOp op) {
          return Label{index == 0 ? Role::NewWeights : Role::NewState,
                       op.getPipeline(), op.getStage()};
        })
        .Case([&](ActionOp op) {
          if (op.getNewSum() == value)
            return Label{Role::Sum, op.getPipeline(), op.getStage()};
          Role role = isa<StashType>(value.getType()) ? Role::Stash
                      : isa<WeightStashType>(value.getType())
                          ? Role::WeightStash
                          : Role::Gradient;
          return labelOf(role, op, op.getStage());
        })
        .Default([](Operation *) { return Label(); });
  }

  /// The label of a result of a forward. The first results are the outputs: one
  /// activation, or a loss for each micro-batch. The stashes follow, by
  /// micro-batch and part.
  Label labelOfResult(ForwardOp op, uint32_t index) const {
    uint32_t p = op.getPipeline(), s = op.getStage(), m = op.getMicroBatch();
    uint32_t outputs = op.getOutputCount();
    if (index < outputs && !op.getLabels())
      return labelOf(Role::Activation, op, s);
    if (index < outputs)
      return {Role::Loss, p, s, m + index};
    uint32_t parts = partsOf(op), k = index - outputs;
    if (auto known = kept.find(op); known != kept.end())
      k = k < known->second.size() ? known->second[k] : parts * op.getCount();
    if (k >= parts * op.getCount())
      return {};
    return {Role::Stash, p, s, m + k / parts, 1, k % parts, parts};
  }

  uint32_t partsOf(ForwardOp op) const {
    if (op.getPipeline() >= layout.directions.size())
      return 1;
    DirectionOp direction = layout.directions[op.getPipeline()];
    return direction.getBackwardParts();
  }

  /// Records which stashes a forward keeps, if it keeps only some. A forward
  /// has no stash for a micro-batch, or a part of one, that is recomputed.
  void keepStashes(ForwardOp op) {
    uint32_t parts = partsOf(op);
    if (recomputed.empty() || op.getStashes().empty() ||
        op.getStashes().size() == size_t{parts} * op.getCount())
      return;
    SmallVector<uint32_t> &pieces = kept[op];
    for (uint32_t k = 0;
         k < parts * op.getCount() && pieces.size() < op.getStashes().size();
         ++k) {
      uint64_t m = op.getMicroBatch() + k / parts;
      if (!recomputed.contains({uint64_t{op.getStage()} << 32 | m, k % parts}))
        pieces.push_back(k);
    }
  }

  const Layout &layout;
  std::vector<int32_t> pipelines; ///< of each micro-batch of a step
  uint32_t stages;
  bool eachMicroBatch; ///< each micro-batch has an update
  bool overlaps;       ///< steps overlap, so stashes etc. are loop-carried
  Block *section = nullptr;
  llvm::DenseSet<Piece> recomputed; ///< pieces that the section recomputes
  /// For each forward that keeps only some of its stashes (the others are
  /// recomputed), the indices of these stashes among all.
  DenseMap<Operation *, SmallVector<uint32_t>> kept;
  /// For each sum to which an action adds, this action.
  DenseMap<Value, Operation *> taken;
  DenseMap<std::pair<uint32_t, uint32_t>, Operation *> updated; ///< by replica
  Operation *reduction = nullptr; ///< the all-reduce of the losses
  size_t found = 0;
};

} // namespace

LogicalResult verifyOperands(const schedule::Problem &problem,
                             const Layout &layout,
                             ArrayRef<SectionOp> sections) {
  OperandVerifier verifier(problem, layout, stepsOverlap(sections));
  for (SectionOp section : sections)
    verifier.verify(section);
  return verifier.finish(sections.front());
}

} // namespace chimera
