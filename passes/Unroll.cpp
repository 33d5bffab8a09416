//===- Unroll.cpp - One training step as a graph --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Steps.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Sections.h"
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
  Unroller(PipelineOp pipeline, const Layout &layout,
           const schedule::Problem &problem, int64_t tokenBytes)
      : pipeline(pipeline), layout(layout), problem(problem),
        loc(pipeline.getLoc()),
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
    for (int64_t i = 0, e = pipeline.getMicroBatches() + pipeline.getStages();
         i < e; ++i)
      numbers.push_back(builder.getI32IntegerAttr(i));
  }

  void run() {
    if (problem.updates != schedule::Updates::Flush)
      return overlap();
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
        unsigned state = stateIndex(p, s);
        auto update = builder.create<OptimizerStepOp>(
            loc, types[s].weights, types[s].state, block.getArgument(state),
            block.getArgument(state + 1), sums[state / 2], IntegerAttr(),
            numbers[p], numbers[s], IntegerAttr(), DenseI32ArrayAttr());
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

  /// Where a step that flushes takes the weights of a replica; its optimizer
  /// state is one further.
  unsigned stateIndex(uint32_t p, uint32_t s) const {
    return 2 * replicaIndex(layout, p, s);
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
            loc, range.results[s], input, block.getArgument(stateIndex(p, s)),
            target, numbers[p], numbers[s], numbers[m], range.count,
            IntegerAttr(), IntegerAttr(), DenseI32ArrayAttr());
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
        gradients[i] = backward(p, s, batches[i / parts], i % parts,
                                stashes[s][i], gradients[i],
                                block.getArgument(stateIndex(p, s)), sums[s]);
    }
    replicas.push_back(sums);
  }

  /// Makes the backward or its two halves, updates `sum`, returns the gradient
  /// for the stage before, if there is one.
  Value backward(uint32_t p, uint32_t s, uint32_t m, uint32_t k, Value stash,
                 Value gradient, Value weights, Value &sum) {
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

  /// What a stage has at hand where steps overlap: versions of its weights,
  /// oldest first, and by micro-batch of the section what its forwards take and
  /// leave.
  struct Flight {
    SmallVector<Value> weights;
    Value state, sum;
    std::vector<Value> inputs, stashes;
  };

  /// Steps without a flush. Stage s is d = D-1-s forwards ahead of its
  /// backwards: D = 3 and N = 3, where 3 and 4 are 0 and 1 of the next step,
  ///
  ///            prologue | step              | epilogue
  ///   stage 0  F0 F1    | F2 B0 F3 B1 F4 B2 | F2 B0 B1 B2
  ///   stage 1  F0       | F1 B0 F2 B1 F3 B2 | F1 B0 F2 B1 B2
  ///   stage 2           | F0 B0 F1 B1 F2 B2 | F0 B0 F1 B1 F2 B2
  ///
  /// Column j of a section has on every stage F of j + d and B of j. An
  /// activation is made a column before the one that takes it, so the last of
  /// each stage but the last is handed on, like the stashes.
  void overlap() {
    stages = static_cast<int32_t>(layout.stages.size());
    microBatches = static_cast<int32_t>(pipeline.getMicroBatches());
    setParts(1);
    fill();
    auto step = builder.create<StepOp>(loc);
    runStep(step, 2 * microBatches, microBatches);
    builder.setInsertionPointAfter(step);
    auto epilogue = builder.create<EpilogueOp>(loc);
    runStep(epilogue, microBatches, std::nullopt);
  }

  void fill() {
    auto prologue = builder.create<PrologueOp>(loc);
    Block &block = prologue.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    flights.assign(stages, Flight());
    for (int32_t s = 0; s < stages; ++s) {
      Flight &flight = flights[s];
      resize(flight);
      Value weights = block.addArgument(types[s].weights, loc);
      flight.state = block.addArgument(types[s].state, loc);
      // Every version begins as the first.
      for (int32_t k = 1; k < schedule::weightVersions(problem, s); ++k)
        flight.weights.push_back(builder.create<CopyOp>(
            loc, types[s].weights, weights, numbers[0], numbers[s],
            IntegerAttr(), DenseI32ArrayAttr()));
      flight.weights.push_back(weights);
    }
    for (int32_t column = 1 - stages; column < 0; ++column)
      forwards(column, microBatches);
    handOn(0);
    builder.setInsertionPointAfter(prologue);
  }

  /// A section of N backwards with the forwards below `end`. What is in flight
  /// behind it begins with micro-batch `next`; none behind the last step.
  void runStep(SectionOp section, int32_t end, std::optional<int32_t> next) {
    Block &block = section.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    for (int32_t s = 0; s < stages; ++s)
      take(block, s);
    losses.assign(microBatches, Value());
    for (int32_t j = 0; j < microBatches; ++j) {
      forwards(j, end);
      Value gradient = losses[j];
      for (int32_t s = stages; s-- > 0;)
        gradient = backwardAt(s, j, gradient);
    }
    finish();
    if (next)
      return handOn(*next);
    SmallVector<Value> results;
    for (Flight &flight : flights)
      results.append({flight.weights.back(), flight.state});
    builder.create<YieldOp>(loc, results);
  }

  void resize(Flight &flight) {
    flight.inputs.assign(microBatches + stages, Value());
    flight.stashes.assign(microBatches + stages, Value());
  }

  /// Adds to `block` what is handed on to stage `s`.
  void take(Block &block, int32_t s) {
    Flight &flight = flights[s] = Flight();
    resize(flight);
    for (int32_t k = 0; k < schedule::weightVersions(problem, s); ++k)
      flight.weights.push_back(block.addArgument(types[s].weights, loc));
    flight.state = block.addArgument(types[s].state, loc);
    int32_t ahead = forwardsAhead(problem, s);
    for (int32_t m = 0; m < ahead; ++m)
      flight.stashes[m] = block.addArgument(pieces[s].stash, loc);
    if (s > 0)
      flight.inputs[ahead] =
          block.addArgument(typesOf(1, 1).results[s - 1].front(), loc);
  }

  /// Ends a section with what is in flight from micro-batch `next` on.
  void handOn(int32_t next) {
    SmallVector<Value> results;
    for (int32_t s = 0; s < stages; ++s) {
      Flight &flight = flights[s];
      int32_t ahead = forwardsAhead(problem, s);
      llvm::append_range(results,
                         ArrayRef(flight.weights)
                             .take_back(schedule::weightVersions(problem, s)));
      results.push_back(flight.state);
      for (int32_t m = next; m < next + ahead; ++m)
        results.push_back(flight.stashes[m]);
      if (s > 0)
        results.push_back(flight.inputs[next + ahead]);
    }
    builder.create<YieldOp>(loc, results);
  }

  /// The forwards of a column, as far as their micro-batches are in [0, end).
  void forwards(int32_t column, int32_t end) {
    const RangeTypes &range = typesOf(1, 1);
    for (int32_t s = 0; s < stages; ++s) {
      int32_t m = column + forwardsAhead(problem, s);
      if (m < 0 || m >= end)
        continue;
      bool last = s + 1 == stages;
      Flight &flight = flights[s];
      Value input =
          s == 0 ? load(range.tokens, 0, 0, m, range.count) : flight.inputs[m];
      Value target = last ? load(range.labels, 0, s, m, range.count) : Value();
      auto forward = builder.create<ForwardOp>(
          loc, range.results[s], input, weightsFor(s, m), target, numbers[0],
          numbers[s], numbers[m], range.count, IntegerAttr(), IntegerAttr(),
          DenseI32ArrayAttr());
      flight.stashes[m] = forward.getStashes().front();
      (last ? losses : flights[s + 1].inputs)[m] = forward.getOutputs().front();
    }
  }

  Value weightsFor(int32_t s, int32_t m) {
    return flights[s].weights[versionRead(problem, s, m)];
  }

  /// The backward of a stage and, where each micro-batch has one, its update.
  Value backwardAt(int32_t s, int32_t m, Value gradient) {
    Flight &flight = flights[s];
    bool updatesNow = problem.updates == schedule::Updates::EachMicroBatch;
    if (updatesNow || !flight.sum)
      flight.sum =
          builder.create<ZeroOp>(loc, types[s].sum, numbers[0], numbers[s],
                                 IntegerAttr(), DenseI32ArrayAttr());
    Value before = backward(0, s, m, /*k=*/0, flight.stashes[m], gradient,
                            weightsFor(s, m), flight.sum);
    if (updatesNow)
      update(s, reduceOne(s), numbers[m]);
    return before;
  }

  /// The sum of a stage's gradient over all copies.
  Value reduceOne(int32_t s) {
    Value sum = flights[s].sum;
    auto width = static_cast<uint32_t>(pipeline.getDataParallel());
    if (width == 1)
      return sum;
    return builder
        .create<AllReduceOp>(loc, TypeRange{types[s].sum}, sum, s, width)
        .getSums()
        .front();
  }

  void update(int32_t s, Value gradient, IntegerAttr microBatch) {
    Flight &flight = flights[s];
    auto update = builder.create<OptimizerStepOp>(
        loc, types[s].weights, types[s].state, flight.weights.back(),
        flight.state, gradient, microBatch, numbers[0], numbers[s],
        IntegerAttr(), DenseI32ArrayAttr());
    flight.weights.push_back(update.getNewWeights());
    flight.state = update.getNewState();
  }

  /// The losses' sum and, where each step has one, the updates.
  void finish() {
    bool updatesNow = problem.updates == schedule::Updates::EachStep;
    SmallVector<Value> sums(stages);
    for (int32_t s = stages; updatesNow && s-- > 0;)
      sums[s] = reduceOne(s);
    builder.create<AllReduceOp>(
        loc, TypeRange{loss}, losses, stages - 1,
        static_cast<uint32_t>(pipeline.getDataParallel()));
    for (int32_t s = stages; updatesNow && s-- > 0;)
      update(s, sums[s], IntegerAttr());
  }

  PipelineOp pipeline;
  const Layout &layout;
  const schedule::Problem &problem;
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
  /// Where steps overlap.
  int32_t stages = 0, microBatches = 0;
  std::vector<Flight> flights;
};

struct Unroll : impl::UnrollPassBase<Unroll> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>()) {
      if (!pipeline.getBody().empty())
        for (Operation &op : pipeline.getBody().front())
          if (isa<SectionOp, WorkerOp>(op)) {
            op.emitOpError("expected a partitioned pipeline, which has stages "
                           "and directions only");
            return signalPassFailure();
          }
      FailureOr<schedule::Problem> problem = problemOf(pipeline);
      if (failed(problem))
        return signalPassFailure();
      FailureOr<std::unique_ptr<program::ModelT>> model = modelOf(pipeline);
      if (failed(model))
        return signalPassFailure();
      FailureOr<Layout> layout = layoutOf(pipeline);
      int64_t tokenBytes =
          *model ? program::tokenBytes(**model, pipeline.getMicroBatchSize())
                 : kBareTokenBytes;
      Unroller(pipeline, *layout, *problem, tokenBytes).run();
    }
  }
};

} // namespace
} // namespace chimera
