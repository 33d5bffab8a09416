//===- StepBuilder.cpp - A builder of a step's ops ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/StepBuilder.h"

#include "runtime/program/Layers.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace chimera {

/// The bytes of `count` micro-batches. If the product is too large, the largest
/// number. chimera-allocate then refuses this number.
static int64_t times(int64_t bytes, int64_t count) {
  int64_t result;
  return __builtin_mul_overflow(bytes, count, &result)
             ? std::numeric_limits<int64_t>::max()
             : result;
}

StepBuilder::StepBuilder(PipelineOp pipeline, const Layout &layout,
                         const schedule::Problem &problem, int64_t tokenBytes,
                         int64_t labelBytes)
    : builder(OpBuilder::atBlockEnd(&pipeline.getBody().front())),
      loc(pipeline.getLoc()), pipeline(pipeline), layout(layout),
      splits(problem.splits), tokenBytes(tokenBytes), labelBytes(labelBytes),
      loss(LossType::get(pipeline.getContext(), program::kLossBytes)),
      replicas(layout.directions.size() * layout.stages.size()),
      width(pipeline.getMicroBatches()) {
  // If steps overlap, a section also runs forwards of the first micro-batches
  // of the next step. Reserve locations for them.
  if (schedule::stepsOverlap(problem.updates))
    width += layout.stages.size();
  cells.resize(width * layout.stages.size());
  microBatchNames.resize(width);
  MLIRContext *context = pipeline.getContext();
  for (StageOp stage : layout.stages) {
    BytesAttr bytes = stage.getBytes();
    types.push_back({WeightsType::get(context, bytes.getWeights()),
                     OptimizerStateType::get(context, bytes.getOptimizer()),
                     WeightGradientType::get(context, bytes.getGradient())});
  }
  for (int64_t i = 0, e = pipeline.getMicroBatches() + pipeline.getStages();
       i < e; ++i)
    numbers.push_back(builder.getI32IntegerAttr(i));
}

Location StepBuilder::named(const Twine &name, Location place) {
  return NameLoc::get(builder.getStringAttr(name), place);
}

Location StepBuilder::locationOf(uint32_t p, uint32_t s) {
  LocationAttr &place = replicas[replicaIndex(layout, p, s)];
  if (!place)
    place = named("pipeline " + Twine(p) + " stage " + Twine(s),
                  StageOp(layout.stages[s]).getLoc());
  return place;
}

Location StepBuilder::locationOf(uint32_t p, uint32_t s, uint32_t m) {
  LocationAttr &place = cells[s * width + m];
  if (place)
    return place;
  StringAttr &name = microBatchNames[m];
  if (!name)
    name = builder.getStringAttr("micro_batch " + Twine(m));
  place = NameLoc::get(name, locationOf(p, s));
  return place;
}

void StepBuilder::setParts(uint32_t count) {
  parts = count;
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
         WeightStashType::get(context, part(bytes.weightStashBytes())),
         GradientType::get(context, part(bytes.getBoundary()))});
  }
}

const StepBuilder::RangeTypes &StepBuilder::rangeOf(uint32_t count) {
  auto [entry, isNew] = ranges.try_emplace(count);
  RangeTypes &range = entry->second;
  if (!isNew)
    return range;
  MLIRContext *context = pipeline.getContext();
  range.count = count > 1 ? builder.getI32IntegerAttr(count) : IntegerAttr();
  range.tokens = TokensType::get(context, times(tokenBytes, count));
  range.labels = LabelsType::get(context, times(labelBytes, count));
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

Value StepBuilder::load(Type type, uint32_t p, uint32_t s, uint32_t m,
                        IntegerAttr count) {
  return builder.create<LoadOp>(locationOf(p, s, m), type, numbers[p],
                                numbers[s], IntegerAttr(), DenseI32ArrayAttr(),
                                numbers[m], count);
}

ForwardOp StepBuilder::forward(uint32_t p, uint32_t s, uint32_t m,
                               uint32_t count, Value input, Value weights) {
  const RangeTypes &range = rangeOf(count);
  if (s == 0)
    input = load(range.tokens, p, 0, m, range.count);
  Value target;
  if (s + 1 == stages())
    target = load(range.labels, p, s, m, range.count);
  return builder.create<ForwardOp>(
      locationOf(p, s, m), range.results[s], input, weights, target, numbers[p],
      numbers[s], numbers[m], range.count,
      /*joined=*/UnitAttr(), IntegerAttr(), IntegerAttr(), DenseI32ArrayAttr());
}

Value StepBuilder::backward(uint32_t p, uint32_t s, uint32_t m, uint32_t k,
                            Value stash, Value gradient, Value weights,
                            Value &sum) {
  Type before = s > 0 ? pieces[s - 1].gradient : Type();
  IntegerAttr parts = pieces[s].parts;
  IntegerAttr part = parts ? builder.getI32IntegerAttr(k) : IntegerAttr();
  Location place = locationOf(p, s, m);
  if (!splits.isSplit(static_cast<int32_t>(s), static_cast<int32_t>(m))) {
    auto whole = builder.create<BackwardOp>(
        place, types[s].sum, before, stash, gradient, weights, sum, numbers[p],
        numbers[s], numbers[m], part, parts, IntegerAttr(), IntegerAttr(),
        DenseI32ArrayAttr());
    sum = whole.getNewSum();
    return whole.getInputGradient();
  }
  auto first = builder.create<InputGradientOp>(
      place, pieces[s].weightStash, before, stash, gradient, weights,
      numbers[p], numbers[s], numbers[m], part, parts, IntegerAttr(),
      IntegerAttr(), DenseI32ArrayAttr());
  auto second = builder.create<WeightGradientOp>(
      place, types[s].sum, first.getWeightStash(), weights, sum, numbers[p],
      numbers[s], numbers[m], part, parts, /*joined=*/UnitAttr(), IntegerAttr(),
      IntegerAttr(), DenseI32ArrayAttr());
  sum = second.getNewSum();
  return first.getInputGradient();
}

Value StepBuilder::copy(uint32_t p, uint32_t s, Value weights) {
  return builder.create<CopyOp>(locationOf(p, s), types[s].weights, weights,
                                numbers[p], numbers[s], IntegerAttr(),
                                DenseI32ArrayAttr());
}

SmallVector<Value> StepBuilder::reduce(uint32_t s, ArrayRef<Value> gradients,
                                       std::optional<uint32_t> tied) {
  auto width = static_cast<uint32_t>(pipeline.getDataParallel());
  if (gradients.size() * width == 1)
    return SmallVector<Value>(gradients);
  SmallVector<Type> results(gradients.size(), gradients.front().getType());
  return builder
      .create<AllReduceOp>(
          named("stage " + Twine(s), StageOp(layout.stages[s]).getLoc()),
          results, gradients, builder.getI32IntegerAttr(s),
          tied ? builder.getI32IntegerAttr(*tied) : IntegerAttr(),
          builder.getI32IntegerAttr(width))
      .getSums();
}

ValueRange StepBuilder::splitGradient(uint32_t p, uint32_t s, Value gradient,
                                      int64_t at) {
  int64_t whole = types[s].sum.getBytes();
  MLIRContext *context = pipeline.getContext();
  Type pieces[] = {WeightGradientType::get(context, at),
                   WeightGradientType::get(context, whole - at)};
  return builder
      .create<SplitOp>(locationOf(p, s), TypeRange(pieces), gradient,
                       numbers[p], numbers[s], IntegerAttr(),
                       DenseI32ArrayAttr())
      .getPieces();
}

Value StepBuilder::joinGradient(uint32_t p, uint32_t s, ValueRange pieces) {
  return builder.create<JoinOp>(locationOf(p, s), types[s].sum, pieces,
                                numbers[p], numbers[s], IntegerAttr(),
                                DenseI32ArrayAttr());
}

void StepBuilder::reduceLosses(ArrayRef<Value> losses) {
  builder.create<AllReduceOp>(
      named("losses", loc), TypeRange{loss}, losses,
      builder.getI32IntegerAttr(stages() - 1), IntegerAttr(),
      builder.getI32IntegerAttr(pipeline.getDataParallel()));
}

Value StepBuilder::squaredNorm(uint32_t p, uint32_t s, Value gradient) {
  return builder.create<SquaredNormOp>(
      locationOf(p, s),
      SquaredNormType::get(pipeline.getContext(), program::kNormBytes),
      gradient, numbers[p], numbers[s], IntegerAttr(), DenseI32ArrayAttr());
}

SmallVector<Value> StepBuilder::reduceNorms(ArrayRef<Value> norms) {
  auto width = static_cast<uint32_t>(pipeline.getDataParallel());
  if (norms.size() * width == 1)
    return SmallVector<Value>(norms);
  SmallVector<Type> results(norms.size(), norms.front().getType());
  return builder
      .create<AllReduceOp>(named("norm", loc), results, norms,
                           builder.getI32IntegerAttr(stages() - 1),
                           IntegerAttr(), builder.getI32IntegerAttr(width))
      .getSums();
}

OptimizerStepOp StepBuilder::update(uint32_t p, uint32_t s, Value weights,
                                    Value state, Value gradient, Value norm,
                                    std::optional<uint32_t> m) {
  return builder.create<OptimizerStepOp>(
      m ? locationOf(p, s, *m) : locationOf(p, s), types[s].weights,
      types[s].state, weights, state, gradient, norm,
      m ? numbers[*m] : IntegerAttr(), numbers[p], numbers[s], IntegerAttr(),
      DenseI32ArrayAttr());
}

} // namespace chimera
