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

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_UNROLLPASS
#include "passes/Passes.h.inc"

namespace {

/// Loads of a bare pipeline: as many bytes as its other values.
constexpr int64_t kBareTokenBytes = 64;
constexpr int64_t kLossBytes = 8;

class Unroller {
public:
  Unroller(PipelineOp pipeline, const Layout &layout, int64_t tokenBytes)
      : pipeline(pipeline), layout(layout), loc(pipeline.getLoc()),
        builder(OpBuilder::atBlockEnd(&pipeline.getBody().front())),
        tokens(TokensType::get(pipeline.getContext(), tokenBytes)),
        labels(LabelsType::get(pipeline.getContext(), tokenBytes)),
        loss(LossType::get(pipeline.getContext(), kLossBytes)) {
    MLIRContext *context = pipeline.getContext();
    for (StageOp stage : layout.stages) {
      BytesAttr bytes = stage.getBytes();
      types.push_back({WeightsType::get(context, bytes.getWeights()),
                       OptimizerStateType::get(context, bytes.getOptimizer()),
                       WeightGradientType::get(context, bytes.getWeights()),
                       StashType::get(context, bytes.getStash()),
                       ActivationType::get(context, bytes.getBoundary()),
                       GradientType::get(context, bytes.getBoundary())});
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
    Type weights, state, sum, stash, activation, gradient;
  };

  Value load(Type type, uint32_t p, uint32_t s, uint32_t m) {
    return builder.create<LoadOp>(loc, type, numbers[p], numbers[s],
                                  IntegerAttr(), DenseI32ArrayAttr(),
                                  numbers[m]);
  }

  /// Stage by stage the forwards of all micro-batches, then the backwards with
  /// the sums of their gradients: what a worker runs lies together in memory.
  void unrollPipeline(Block &block, uint32_t p) {
    DirectionOp direction = layout.directions[p];
    ArrayRef<int32_t> microBatches = direction.getMicroBatches();
    uint32_t stages = layout.stages.size();
    // What each micro-batch hands to the next stage.
    std::vector<Value> boundary(microBatches.size());
    std::vector<std::vector<Value>> stashes(stages);
    for (uint32_t s = 0; s < stages; ++s) {
      bool last = s + 1 == stages;
      stashes[s].reserve(microBatches.size());
      for (auto [i, m] : llvm::enumerate(microBatches)) {
        Value input = s == 0 ? load(tokens, p, 0, m) : boundary[i];
        Value target = last ? load(labels, p, s, m) : Value();
        auto forward = builder.create<ForwardOp>(
            loc, last ? loss : types[s].activation, types[s].stash, input,
            block.getArgument(stateIndex(layout, p, s)), target, numbers[p],
            numbers[s], numbers[m], IntegerAttr(), IntegerAttr(),
            DenseI32ArrayAttr());
        boundary[i] = forward.getOutput();
        stashes[s].push_back(forward.getStash());
        if (last)
          losses[m] = boundary[i];
      }
    }
    SmallVector<Value> sums(stages);
    for (uint32_t s = stages; s-- > 0;) {
      sums[s] =
          builder.create<ZeroOp>(loc, types[s].sum, numbers[p], numbers[s],
                                 IntegerAttr(), DenseI32ArrayAttr());
      for (auto [i, m] : llvm::enumerate(microBatches))
        boundary[i] =
            backward(block, p, s, m, stashes[s][i], boundary[i], sums[s]);
    }
    replicas.push_back(sums);
  }

  /// Makes the backward or its two halves, updates `sum`, returns the gradient
  /// for the stage before, if there is one.
  Value backward(Block &block, uint32_t p, uint32_t s, uint32_t m, Value stash,
                 Value gradient, Value &sum) {
    Value weights = block.getArgument(stateIndex(layout, p, s));
    Type before = s > 0 ? types[s - 1].gradient : Type();
    if (!pipeline.getSplitBackward()) {
      auto whole = builder.create<BackwardOp>(
          loc, types[s].sum, before, stash, gradient, weights, sum, numbers[p],
          numbers[s], numbers[m], IntegerAttr(), IntegerAttr(),
          DenseI32ArrayAttr());
      sum = whole.getNewSum();
      return whole.getInputGradient();
    }
    auto first = builder.create<InputGradientOp>(
        loc, types[s].stash, before, stash, gradient, weights, numbers[p],
        numbers[s], numbers[m], IntegerAttr(), IntegerAttr(),
        DenseI32ArrayAttr());
    auto second = builder.create<WeightGradientOp>(
        loc, types[s].sum, first.getRest(), weights, sum, numbers[p],
        numbers[s], numbers[m], IntegerAttr(), IntegerAttr(),
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
  Type tokens, labels, loss;
  SmallVector<StageTypes> types;
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
