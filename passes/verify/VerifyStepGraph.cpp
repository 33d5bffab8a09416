//===- VerifyStepGraph.cpp - Checks of a step as a graph of values --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Verifier.h"

#include "passes/schedule/Sections.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace chimera {

namespace {

/// True if `value` is the complete sum of a replica's weight gradients: an
/// action of the replica makes it, and no action adds to it.
bool isSumOf(Value value, uint32_t pipeline, uint32_t stage) {
  auto action = value.getDefiningOp<ActionOp>();
  if (!action || action.getNewSum() != value ||
      action.getPipeline() != pipeline || action.getStage() != stage)
    return false;
  return llvm::none_of(value.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<ActionOp>(use.getOwner());
    return user && user.getSumOperand() == &use;
  });
}

template <typename Op> bool isOf(Op op, uint32_t pipeline, uint32_t stage) {
  return op.getPipeline() == pipeline && op.getStage() == stage;
}

/// Checks the ops that reduce gradients, and the ops that use the reduced
/// gradients.
class ReductionVerifier {
public:
  ReductionVerifier(PipelineOp pipeline, const Layout &layout,
                    std::optional<program::Tied> tied, bool clips)
      : layout(layout), tied(tied), width(pipeline.getDataParallel()),
        replicated(layout.directions.size() * width > 1), clips(clips) {}

  LogicalResult verify(Block &section) const {
    LogicalResult result = success();
    for (Operation &op : section) {
      LogicalResult good =
          llvm::TypeSwitch<Operation *, LogicalResult>(&op)
              .Case([&](ActionOp action) {
                return action.getNewSum()
                           ? verifyUsed(action, action.getNewSum())
                           : success();
              })
              .Case([&](AllReduceOp reduce) { return verifyReduce(reduce); })
              .Case<SplitOp, JoinOp>([&](Operation *op) {
                return verifyUsed(op, op->getResults());
              })
              .Case([&](SquaredNormOp op) { return verifyGradient(op); })
              .Case([&](OptimizerStepOp op) { return verifyUpdate(op); })
              .Default(success());
      if (failed(good))
        result = failure();
    }
    return result;
  }

private:
  /// Fails if a gradient sum has no use, because then a gradient is lost. Every
  /// sum must be an operand of an action that adds to it, an all-reduce, a
  /// split, a join or an update. An update uses only one sum, so a replica
  /// cannot have two sums.
  static LogicalResult verifyUsed(Operation *op, ValueRange sums) {
    if (llvm::none_of(sums, [](Value sum) { return sum.use_empty(); }))
      return success();
    return op->emitOpError("expected a use of its sum");
  }

  /// Checks that an all-reduce has the complete sum of each pipeline, or the
  /// right piece of this sum, as operands, and sums over all copies.
  LogicalResult verifyReduce(AllReduceOp reduce) const {
    if (reduce.getWidth() != width)
      return reduce.emitOpError("expected width ")
             << width << ", the pipeline's data_parallel, "
             << "got " << reduce.getWidth();
    if (reduce.sumsLosses())
      return success();
    if (reduce.sumsNorms())
      return verifyNorms(reduce);
    bool ofTied = reduce.getTied().has_value();
    if (ofTied && (!tied || reduce.getStage() != 0 ||
                   *reduce.getTied() + 1 != layout.stages.size()))
      return reduce.emitOpError("expected the first and the last stage of a "
                                "tied model, got stages ")
             << reduce.getStage() << " and " << *reduce.getTied();
    size_t each = ofTied ? 2 : 1;
    if (reduce.getContributions().size() != each * layout.directions.size())
      return reduce.emitOpError("expected ")
             << (ofTied ? "two contributions" : "a contribution")
             << " of each of " << layout.directions.size() << " pipelines, got "
             << reduce.getContributions().size();
    for (auto [i, contribution] : llvm::enumerate(reduce.getContributions())) {
      uint32_t p = i / each, s = reduce.getStageOf(i);
      if (!isContributionOf(contribution, p, s, ofTied))
        return reduce.emitOpError("expected contribution ")
               << i << " to be the whole sum of pipeline " << p << ", stage "
               << s
               << (ofTied         ? ", of its tied parameters"
                   : tiedPiece(s) ? ", without its tied parameters"
                                  : "");
    }
    return verifyUsed(reduce, reduce.getResults());
  }

  /// Checks that an all-reduce has the squared norm of each replica as operand:
  /// first those of pipeline 0, by stage.
  LogicalResult verifyNorms(AllReduceOp reduce) const {
    const size_t stages = layout.stages.size();
    const size_t replicas = layout.directions.size() * stages;
    if (reduce.getStage() + 1 != stages ||
        reduce.getContributions().size() != replicas)
      return reduce.emitOpError("expected the squared norms of ")
             << stages << " stages of each of " << layout.directions.size()
             << " pipelines, got " << reduce.getContributions().size()
             << " of stages up to " << reduce.getStage();
    for (auto [i, contribution] : llvm::enumerate(reduce.getContributions()))
      if (auto norm = contribution.getDefiningOp<SquaredNormOp>();
          !norm || !isOf(norm, i / stages, i % stages))
        return reduce.emitOpError("expected contribution ")
               << i << " to be the squared norm of pipeline " << i / stages
               << ", stage " << i % stages;
    return success();
  }

  /// Checks that an optimizer step uses a gradient that contains the sums of
  /// all replicas of its stage and, if the pipeline clips, the squared norm of
  /// the gradients of all stages.
  LogicalResult verifyUpdate(OptimizerStepOp update) const {
    if (failed(verifyGradient(update)))
      return failure();
    Value norm = update.getNorm();
    if (clips != static_cast<bool>(norm))
      return update.emitOpError(clips ? "expected a squared norm, as the "
                                        "training has clip_norm, got none"
                                      : "expected no squared norm, as the "
                                        "training has no clip_norm");
    if (!norm)
      return success();
    const bool isAlone = !replicated && layout.stages.size() == 1;
    if (isAlone ? norm.getDefiningOp<SquaredNormOp>() == nullptr
                : norm.getDefiningOp<AllReduceOp>() == nullptr)
      return update.emitOpError("expected the squared norm of the gradients of "
                                "all stages, got that of one replica");
    return success();
  }

  /// Checks that an optimizer step or a squared norm uses a gradient that
  /// contains the sums of all replicas of its stage.
  template <typename Op> LogicalResult verifyGradient(Op op) const {
    Value gradient = op.getGradient();
    uint32_t s = op.getStage();
    std::optional<unsigned> piece = tiedPiece(s);
    if (!piece)
      return verifySum(op, gradient, replicated, false);
    auto join = gradient.getDefiningOp<JoinOp>();
    if (!join || join.getPieces().size() != 2 ||
        !isOf(join, op.getPipeline(), s))
      return op.emitOpError("expected the gradient of the tied parameters "
                            "joined with that of the others");
    return success(
        succeeded(verifySum(op, join.getPieces()[*piece], true, true)) &&
        succeeded(
            verifySum(op, join.getPieces()[1 - *piece], replicated, false)));
  }

  /// If the stage has tied parameters, its gradient has two pieces, and this is
  /// the index of the tied piece. Otherwise none.
  std::optional<unsigned> tiedPiece(uint32_t stage) const {
    return program::indexOfTiedPiece(tied ? &*tied : nullptr,
                                     layout.stages.size(), stage);
  }

  /// True if `value` is what an all-reduce adds up over the replicas of a
  /// stage: the sum of one replica's gradients over all its micro-batches. If
  /// the stage has tied parameters, two all-reduces share the work. One is over
  /// the tied piece of the sum (`ofTied`), the other over the other piece.
  bool isContributionOf(Value value, uint32_t pipeline, uint32_t stage,
                        bool ofTied) const {
    std::optional<unsigned> piece = tiedPiece(stage);
    if (!piece)
      return isSumOf(value, pipeline, stage);
    auto split = value.getDefiningOp<SplitOp>();
    if (!split || split.getPieces().size() != 2 ||
        !isOf(split, pipeline, stage) ||
        !isSumOf(split.getGradient(), pipeline, stage))
      return false;
    auto type = cast<WeightGradientType>(split.getPieces()[*piece].getType());
    return type.getBytes() == static_cast<int64_t>(tied->bytes()) &&
           value == split.getPieces()[ofTied ? *piece : 1 - *piece];
  }

  /// Checks that `sum`, which is the gradient of `op` or a piece of it, belongs
  /// to the same replica as `op`. If `isReduced`, it must come from an
  /// all-reduce.
  template <typename Op>
  LogicalResult verifySum(Op op, Value sum, bool isReduced, bool ofTied) const {
    uint32_t p = op.getPipeline(), s = op.getStage();
    auto reduce = sum.getDefiningOp<AllReduceOp>();
    if (isReduced && !reduce)
      return op.emitOpError("expected an all-reduced gradient, got the "
                            "gradient of one replica");
    bool own = isContributionOf(sum, p, s, ofTied);
    if (reduce) {
      unsigned index = cast<OpResult>(sum).getResultNumber();
      own = reduce.getTied().has_value() == ofTied &&
            reduce.getStageOf(index) == s && index / (ofTied ? 2 : 1) == p;
    }
    if (!own)
      return op.emitOpError("expected the gradient of pipeline ")
             << p << ", stage " << s;
    return success();
  }

  const Layout &layout;
  std::optional<program::Tied> tied;
  uint32_t width;
  bool replicated, clips;
};

} // namespace

LogicalResult verifyStepGraph(PipelineOp pipeline,
                              const schedule::Problem &problem,
                              ArrayRef<SectionOp> sections) {
  FailureOr<Layout> layout = layoutOf(pipeline);
  if (failed(layout))
    return failure();
  FailureOr<std::optional<program::Tied>> tied = tiedOf(pipeline, *layout);
  if (failed(tied))
    return failure();
  LogicalResult result = verifyOperands(problem, *layout, sections);
  ReductionVerifier reductions(pipeline, *layout, *tied, problem.clips);
  for (SectionOp section : sections)
    if (failed(reductions.verify(section.getBody().front())))
      result = failure();
  if (failed(verifySections(pipeline, problem)))
    result = failure();
  return result;
}

} // namespace chimera
