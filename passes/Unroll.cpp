//===- Unroll.cpp - One training step as a graph --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "runtime/program/Layout.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <map>

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_UNROLLPASS
#include "passes/Passes.h.inc"

namespace {

/// Loads of a bare pipeline: as many bytes as its other values.
constexpr int64_t kBareTokenBytes = 64;
constexpr int64_t kLossBytes = 8;

/// The bytes of several micro-batches. What does not fit is as good as the
/// largest number, which allocate refuses.
int64_t times(int64_t bytes, int64_t count) {
  int64_t result;
  return __builtin_mul_overflow(bytes, count, &result)
             ? std::numeric_limits<int64_t>::max()
             : result;
}

class Unroller {
public:
  Unroller(PipelineOp pipeline, const Layout &layout, int64_t tokenBytes)
      : pipeline(pipeline), layout(layout), loc(pipeline.getLoc()),
        builder(OpBuilder::atBlockEnd(&pipeline.getBody().front())),
        tokenBytes(tokenBytes),
        loss(LossType::get(pipeline.getContext(), kLossBytes)) {
    MLIRContext *context = pipeline.getContext();
    for (StageOp stage : layout.stages) {
      BytesAttr bytes = stage.getBytes();
      types.push_back({WeightsType::get(context, bytes.getWeights()),
                       OptimizerStateType::get(context, bytes.getOptimizer()),
                       WeightGradientType::get(context, bytes.getWeights())});
    }
    for (int64_t i = 0,
                 e = std::max(pipeline.getMicroBatches(), pipeline.getStages());
         i < e; ++i)
      numbers.push_back(builder.getI32IntegerAttr(i));
  }

  void run() {
    auto step = builder.create<StepOp>(loc);
    Block &block = step.getBody().emplaceBlock();
    for (size_t p = 0; p < layout.directions.size(); ++p)
      for (const StageTypes &type : types) {
        block.addArgument(type.weights, loc);
        block.addArgument(type.state, loc);
      }
    builder.setInsertionPointToEnd(&block);
    losses.resize(pipeline.getMicroBatches());
    for (uint32_t p = 0; p < layout.directions.size(); ++p)
      unrollPipeline(block, p);
    SmallVector<Value> sums = reduce();
    SmallVector<Value> results(block.getNumArguments());
    for (uint32_t s = layout.stages.size(); s-- > 0;)
      for (uint32_t p = 0; p < layout.directions.size(); ++p) {
        unsigned state = stateIndex(layout, p, s);
        auto update = builder.create<OptimizerStepOp>(
            loc, types[s].weights, types[s].state, block.getArgument(state),
            block.getArgument(state + 1), sums[state / 2], numbers[p],
            numbers[s], IntegerAttr(), DenseI32ArrayAttr());
        results[state] = update.getNewWeights();
        results[state + 1] = update.getNewState();
      }
    builder.create<YieldOp>(loc, results);
  }

private:
  struct StageTypes {
    Type weights, state, sum;
  };
  /// What forwards that cover the same number of micro-batches make and read.
  struct RangeTypes {
    IntegerAttr count; ///< null for one
    Type tokens, labels;
    std::vector<SmallVector<Type>> results; ///< of each stage
  };
  /// What the backwards of a pipeline make and read.
  struct PieceTypes {
    IntegerAttr parts; ///< null for one
    Type stash, gradient;
  };

  /// The types of each stage's pieces, of which a micro-batch has `parts`.
  void setParts(uint32_t parts) {
    MLIRContext *context = pipeline.getContext();
    pieces.clear();
    ranges.clear();
    for (StageOp stage : layout.stages) {
      BytesAttr bytes = stage.getBytes();
      auto part = [&](int64_t whole) {
        return static_cast<int64_t>(llvm::divideCeil(whole, parts));
      };
      pieces.push_back(
          {parts > 1 ? builder.getI32IntegerAttr(parts) : IntegerAttr(),
           StashType::get(context, part(bytes.getStash())),
           GradientType::get(context, part(bytes.getBoundary()))});
    }
  }

  const RangeTypes &typesOf(uint32_t count, uint32_t parts) {
    auto [entry, isNew] = ranges.try_emplace(count);
    RangeTypes &range = entry->second;
    if (!isNew)
      return range;
    MLIRContext *context = pipeline.getContext();
    range.count = count > 1 ? builder.getI32IntegerAttr(count) : IntegerAttr();
    range.tokens = TokensType::get(context, times(tokenBytes, count));
    range.labels = LabelsType::get(context, times(tokenBytes, count));
    for (size_t s = 0; s < layout.stages.size(); ++s) {
      StageOp stage = layout.stages[s];
      SmallVector<Type> results(count, loss);
      if (s + 1 < layout.stages.size())
        results = {ActivationType::get(
            context, times(stage.getBytes().getBoundary(), count))};
      results.append(count * parts, pieces[s].stash);
      range.results.push_back(results);
    }
    return range;
  }

  Value load(Type type, uint32_t p, uint32_t s, uint32_t m, IntegerAttr count) {
    return builder.create<LoadOp>(loc, type, numbers[p], numbers[s],
                                  IntegerAttr(), DenseI32ArrayAttr(),
                                  numbers[m], count);
  }

  /// Stage by stage all forwards, then the backwards with the sums of their
  /// gradients: what a worker runs lies together in memory.
  void unrollPipeline(Block &block, uint32_t p) {
    DirectionOp direction = layout.directions[p];
    ArrayRef<int32_t> batches = direction.getMicroBatches();
    SmallVector<int32_t> counts = direction.forwardCounts();
    uint32_t stages = layout.stages.size();
    uint32_t parts = direction.getBackwardParts();
    setParts(parts);
    // What each range of micro-batches hands to the next stage.
    std::vector<Value> inputs(counts.size());
    // Of each stage, by micro-batch and part.
    std::vector<std::vector<Value>> stashes(stages);
    for (uint32_t s = 0; s < stages; ++s) {
      bool last = s + 1 == stages;
      stashes[s].reserve(batches.size() * parts);
      uint32_t first = 0;
      for (auto [i, count] : llvm::enumerate(counts)) {
        const RangeTypes &range = typesOf(count, parts);
        int32_t m = batches[first];
        Value input =
            s == 0 ? load(range.tokens, p, 0, m, range.count) : inputs[i];
        Value target =
            last ? load(range.labels, p, s, m, range.count) : Value();
        auto forward = builder.create<ForwardOp>(
            loc, range.results[s], input,
            block.getArgument(stateIndex(layout, p, s)), target, numbers[p],
            numbers[s], numbers[m], range.count, IntegerAttr(), IntegerAttr(),
            DenseI32ArrayAttr());
        inputs[i] = forward.getOutputs().front();
        llvm::append_range(stashes[s], forward.getStashes());
        if (last)
          llvm::copy(forward.getOutputs(), losses.begin() + m);
        first += count;
      }
    }
    // What each piece hands to the stage before: at first a loss.
    std::vector<Value> gradients;
    for (int32_t m : batches)
      gradients.insert(gradients.end(), parts, losses[m]);
    SmallVector<Value> sums(stages);
    for (uint32_t s = stages; s-- > 0;) {
      sums[s] =
          builder.create<ZeroOp>(loc, types[s].sum, numbers[p], numbers[s],
                                 IntegerAttr(), DenseI32ArrayAttr());
      for (size_t i = 0; i < gradients.size(); ++i)
        gradients[i] = backward(block, p, s, batches[i / parts], i % parts,
                                stashes[s][i], gradients[i], sums[s]);
    }
    replicas.push_back(sums);
  }

  /// Makes the backward or its two halves, updates `sum`, returns the gradient
  /// for the stage before, if there is one.
  Value backward(Block &block, uint32_t p, uint32_t s, uint32_t m, uint32_t k,
                 Value stash, Value gradient, Value &sum) {
    Value weights = block.getArgument(stateIndex(layout, p, s));
    Type before = s > 0 ? pieces[s - 1].gradient : Type();
    IntegerAttr parts = pieces[s].parts;
    IntegerAttr part = parts ? builder.getI32IntegerAttr(k) : IntegerAttr();
    if (!pipeline.getSplitBackward()) {
      auto whole = builder.create<BackwardOp>(
          loc, types[s].sum, before, stash, gradient, weights, sum, numbers[p],
          numbers[s], numbers[m], part, parts, IntegerAttr(), IntegerAttr(),
          DenseI32ArrayAttr());
      sum = whole.getNewSum();
      return whole.getInputGradient();
    }
    auto first = builder.create<InputGradientOp>(
        loc, pieces[s].stash, before, stash, gradient, weights, numbers[p],
        numbers[s], numbers[m], part, parts, IntegerAttr(), IntegerAttr(),
        DenseI32ArrayAttr());
    auto second = builder.create<WeightGradientOp>(
        loc, types[s].sum, first.getRest(), weights, sum, numbers[p],
        numbers[s], numbers[m], part, parts, IntegerAttr(), IntegerAttr(),
        DenseI32ArrayAttr());
    sum = second.getNewSum();
    return first.getInputGradient();
  }

  /// The reduced gradient of each replica, in the order of the states. Later
  /// stages come first: their gradients are complete first.
  SmallVector<Value> reduce() {
    size_t stages = layout.stages.size();
    auto width = static_cast<uint32_t>(pipeline.getDataParallel());
    SmallVector<Value> sums(replicas.size() * stages);
    for (uint32_t s = stages; s-- > 0;) {
      SmallVector<Value> operands;
      for (ArrayRef<Value> replica : replicas)
        operands.push_back(replica[s]);
      SmallVector<Value> reduced = operands;
      if (operands.size() * width > 1) {
        SmallVector<Type> results(operands.size(), types[s].sum);
        reduced = builder.create<AllReduceOp>(loc, results, operands, s, width)
                      .getSums();
      }
      for (size_t p = 0; p < replicas.size(); ++p)
        sums[p * stages + s] = reduced[p];
    }
    builder.create<AllReduceOp>(loc, TypeRange{loss}, losses, stages - 1,
                                width);
    return sums;
  }

  PipelineOp pipeline;
  const Layout &layout;
  Location loc;
  OpBuilder builder;
  int64_t tokenBytes;
  Type loss;
  SmallVector<StageTypes> types;
  /// Of the pipeline that is being unrolled: by stage, by size of the range.
  SmallVector<PieceTypes> pieces;
  std::map<uint32_t, RangeTypes> ranges;
  /// Attributes of small numbers, made once.
  std::vector<IntegerAttr> numbers;
  /// The loss of each micro-batch; the sum of each pipeline's stages.
  std::vector<Value> losses;
  std::vector<SmallVector<Value>> replicas;
};

struct Unroll : impl::UnrollPassBase<Unroll> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>()) {
      if (!pipeline.getBody().empty())
        for (Operation &op : pipeline.getBody().front())
          if (isa<StepOp, WorkerOp>(op)) {
            op.emitOpError("expected a partitioned pipeline, which has stages "
                           "and directions only");
            return signalPassFailure();
          }
      if (failed(problemOf(pipeline)))
        return signalPassFailure();
      FailureOr<std::unique_ptr<program::ModelT>> model = modelOf(pipeline);
      if (failed(model))
        return signalPassFailure();
      FailureOr<Layout> layout = layoutOf(pipeline);
      int64_t tokenBytes =
          *model ? program::tokenBytes(**model, pipeline.getMicroBatchSize())
                 : kBareTokenBytes;
      Unroller(pipeline, *layout, tokenBytes).run();
    }
  }
};

} // namespace
} // namespace chimera
