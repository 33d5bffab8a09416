//===- Partition.cpp - Model to stages and directions ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Described.h"
#include "passes/Orders.h"
#include "passes/Passes.h"
#include "runtime/program/Layers.h"
#include "runtime/program/Saturated.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Passes.h.inc"

namespace {

/// The bytes of a bare stage's values: eight 64-bit words. Its optimizer state
/// has twice as many.
constexpr int64_t kBareBytes = 64;

/// Cuts `costs` into `parts` contiguous, non-empty ranges whose largest sum is
/// least; returns the ends. best[k][i] is the least largest sum of k+1 ranges
/// over the first i costs:
///
///   best[k][i] = min over j < i of max(best[k-1][j], costs[j] + … +
///   costs[i-1])
///
/// The first grows with j and the second shrinks, so the minimum is where they
/// cross, and the crossing only moves up with i: O(parts · costs).
SmallVector<uint32_t> balancedCuts(ArrayRef<int64_t> costs, uint32_t parts) {
  auto count = static_cast<uint32_t>(costs.size());
  std::vector<int64_t> prefix(count + 1, 0);
  for (uint32_t i = 0; i < count; ++i)
    prefix[i + 1] = prefix[i] + costs[i];
  std::vector<int64_t> before = prefix, best(count + 1);
  std::vector<std::vector<uint32_t>> from(parts,
                                          std::vector<uint32_t>(count + 1, 0));
  for (uint32_t k = 1; k < parts; ++k) {
    uint32_t j = k;
    for (uint32_t i = k + 1; i <= count; ++i) {
      while (j + 1 < i && before[j] < prefix[i] - prefix[j])
        ++j;
      // The crossing is at j, or between j-1 and j.
      best[i] = std::max(before[j], prefix[i] - prefix[j]);
      from[k][i] = j;
      if (j > k && prefix[i] - prefix[j - 1] <= best[i]) {
        best[i] = prefix[i] - prefix[j - 1];
        from[k][i] = j - 1;
      }
    }
    before = best;
  }
  SmallVector<uint32_t> ends(parts);
  uint32_t end = count;
  for (uint32_t k = parts; k-- > 0;) {
    ends[k] = end;
    end = from[k][end];
  }
  return ends;
}

/// Stages without a model. A forward of one micro-batch takes one unit, and so
/// does a backward or, of one in parts, each part.
void makeBareStages(PipelineOp pipeline, int64_t parts, OpBuilder &builder) {
  auto cost = CostAttr::get(builder.getContext(), 1, parts, parts, parts,
                            parts > 1 ? parts : 0, /*update=*/0);
  auto bytes = BytesAttr::get(builder.getContext(), kBareBytes, 2 * kBareBytes,
                              kBareBytes, kBareBytes, /*copy=*/0,
                              /*weight_stash=*/0);
  for (uint32_t s = 0; s < pipeline.getStages(); ++s)
    builder.create<StageOp>(pipeline.getLoc(), s, IntegerAttr(), IntegerAttr(),
                            cost, bytes);
}

int64_t backwardFlops(const program::LayerCost &cost) {
  return program::saturatedSum(
      {cost.inputGradientFlops, cost.weightGradientFlops});
}

/// The nanoseconds that `amount` takes at a rate a second, rounded up; 2^60,
/// some decades, where it is more.
int64_t nanoseconds(int64_t amount, uint64_t rate) {
  __extension__ using Wide = __int128;
  Wide time = (static_cast<Wide>(amount) * 1000000000 + rate - 1) / rate;
  return static_cast<int64_t>(std::min<Wide>(time, int64_t{1} << 60));
}

LogicalResult makeModelStages(PipelineOp pipeline, const program::ModelT &model,
                              int64_t parts, OpBuilder &builder) {
  // Cutting takes a cell of memory for each stage and layer.
  constexpr int64_t kMostCells = int64_t{1} << 26;
  // Whatever is added up later stays below 2^63.
  constexpr int64_t kLargest = int64_t{1} << 60;
  uint32_t layers = program::layerCount(model);
  auto stages = static_cast<uint32_t>(pipeline.getStages());
  if (layers < stages)
    return pipeline.emitOpError("expected at most ")
           << layers << " stages, the model's layers with embedding and head, "
           << "got " << stages;
  if (int64_t cells = int64_t{layers} * stages; cells > kMostCells)
    return pipeline.emitOpError("expected at most ")
           << kMostCells << " layers times stages, got " << cells;
  program::Types types = typesOf(pipeline);
  auto batch = static_cast<uint32_t>(pipeline.getMicroBatchSize());
  if (std::string problem =
          program::checkUse(model, types, batch, static_cast<uint32_t>(parts));
      !problem.empty())
    return pipeline.emitOpError(problem);
  std::vector<program::LayerCost> costs;
  std::vector<int64_t> times;
  int64_t total = 0;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    costs.push_back(program::layerCost(model, types, batch, layer));
    const program::LayerCost &cost = costs.back();
    times.push_back(
        program::saturatedSum({cost.forwardFlops, backwardFlops(cost)}));
    total = program::saturatedSum(
        {total, times.back(), cost.stashBytes, cost.weightStashBytes});
  }
  int64_t boundary = 0;
  for (uint32_t layer = 0; layer < layers; ++layer)
    boundary =
        std::max(boundary, program::boundaryBytes(model, types, batch, layer));
  int64_t parameters = program::parameterCount(model, 0, layers);
  if (total > kLargest || boundary > kLargest || parameters > kLargest / 16)
    return pipeline.emitOpError("expected a model whose operations and bytes "
                                "for a micro-batch are below 2^60");
  MachineOp machine = machineOf(pipeline);
  uint32_t first = 0;
  SmallVector<uint32_t> ends = balancedCuts(times, stages);
  for (uint32_t s = 0; s < stages; ++s) {
    int64_t forward = 0, input = 0, weight = 0, stash = 0, weightStash = 0;
    for (uint32_t layer = first; layer < ends[s]; ++layer) {
      forward += costs[layer].forwardFlops;
      input += costs[layer].inputGradientFlops;
      weight += costs[layer].weightGradientFlops;
      stash += costs[layer].stashBytes;
      weightStash += costs[layer].weightStashBytes;
    }
    int64_t elements = program::parameterCount(model, first, ends[s] - first);
    int64_t parameterBytes = program::parameterBytes(types, elements);
    int64_t copy = program::copyBytes(types, elements);
    auto bytes = BytesAttr::get(
        builder.getContext(), parameterBytes + copy,
        program::optimizerBytes(optimizerOf(pipeline), parameterBytes),
        std::max<int64_t>(stash, 1),
        program::boundaryBytes(model, types, batch, ends[s] - 1), copy,
        std::max<int64_t>(weightStash, 1));
    // An embedding is a copy and has next to no operations, but takes time, of
    // each part of a micro-batch too.
    auto positive = [&](int64_t flops) {
      int64_t time = machine ? nanoseconds(flops, machine.getSpeed()) : flops;
      return std::max(time, parts);
    };
    // Halves are derived where both are equal.
    const bool areEqual = input == weight;
    // Read: gradient, weights, optimizer state; written: the latter two.
    int64_t moved =
        bytes.getGradient() + 2 * (bytes.getWeights() + bytes.getOptimizer());
    int64_t update = 0;
    if (machine && machine.getMemoryBandwidth())
      update = nanoseconds(moved, *machine.getMemoryBandwidth());
    auto cost = CostAttr::get(
        builder.getContext(), positive(forward), positive(input + weight),
        areEqual ? 0 : positive(input), areEqual ? 0 : positive(weight),
        /*recompute=*/0, update);
    builder.create<StageOp>(pipeline.getLoc(), s,
                            builder.getI32IntegerAttr(first),
                            builder.getI32IntegerAttr(ends[s]), cost, bytes);
    first = ends[s];
  }
  return success();
}

/// Given stages of a model hold its layers, each once and in order, and their
/// bytes.
LogicalResult checkLayers(const Layout &layout, const program::ModelT &model) {
  uint32_t next = 0, layers = program::layerCount(model);
  for (StageOp stage : layout.stages) {
    if (!stage.getFirst() || *stage.getFirst() != next)
      return stage.emitOpError("expected layers that begin with ")
             << next << ", the first that no stage before has";
    next = *stage.getLast();
  }
  if (StageOp last = layout.stages.back(); next != layers)
    return last.emitOpError("expected layers up to ")
           << layers << ", the model's with embedding and head, got " << next;
  for (StageOp stage : layout.stages)
    if (failed(checkModelStage(stage, model)))
      return failure();
  return success();
}

void makeDirections(PipelineOp pipeline,
                    const std::vector<schedule::Pipeline> &laid) {
  OpBuilder builder = OpBuilder::atBlockEnd(&pipeline.getBody().front());
  for (auto [index, direction] : llvm::enumerate(laid)) {
    auto numbers = [&](const std::vector<int32_t> &list) {
      return builder.getDenseI32ArrayAttr(list);
    };
    IntegerAttr parts;
    if (direction.backwardParts > 1)
      parts = builder.getI32IntegerAttr(direction.backwardParts);
    builder.create<DirectionOp>(
        pipeline.getLoc(), builder.getI32IntegerAttr(index),
        WayAttr::get(builder.getContext(), direction.up ? Way::Up : Way::Down),
        numbers(direction.workers), numbers(direction.microBatches),
        direction.forwards.empty() ? DenseI32ArrayAttr()
                                   : numbers(direction.forwards),
        parts);
  }
}

/// A part holds whole samples, and its gradient whole bytes.
LogicalResult checkParts(PipelineOp pipeline, int64_t parts) {
  if (pipeline.getModel() && pipeline.getMicroBatchSize() % parts != 0)
    return pipeline.emitOpError("expected a micro_batch_size that is a "
                                "multiple of ")
           << parts << ", the parts of a backward, got "
           << pipeline.getMicroBatchSize();
  for (auto stage : pipeline.getBody().front().getOps<StageOp>())
    if (int64_t boundary = stage.getBytes().getBoundary();
        boundary % parts != 0)
      return stage.emitOpError("expected a boundary that is a multiple of ")
             << parts << ", the parts of a backward, got " << boundary;
  return success();
}

/// A pipeline must fit its machine, whose times are in nanoseconds.
LogicalResult checkMachine(PipelineOp pipeline, MachineOp machine,
                           bool hasCosts) {
  uint64_t needed = pipeline.workerCount() * pipeline.getDataParallel();
  if (needed > machine.getDevices())
    return pipeline.emitOpError("expected at most the ")
           << machine.getDevices() << " devices of @" << machine.getSymName()
           << ", got " << needed << ": " << pipeline.workerCount()
           << " workers, data_parallel(" << pipeline.getDataParallel() << ")";
  if (!hasCosts)
    return pipeline.emitOpError("expected a model, or stages with costs and "
                                "time_unit(ns), on a machine");
  if (pipeline.getTimeUnit().value_or("ns") != "ns")
    return pipeline.emitOpError("expected time_unit(ns), in which a machine's "
                                "times are, got ")
           << *pipeline.getTimeUnit();
  return success();
}

/// Says in what unit the costs are that partition finds.
LogicalResult setTimeUnit(PipelineOp pipeline, StringRef unit) {
  if (std::optional<StringRef> given = pipeline.getTimeUnit();
      given && *given != unit)
    return pipeline.emitOpError("expected time_unit(")
           << unit << ") or no time_unit, got " << *given
           << ": the pipeline gives no stages with costs of its own";
  pipeline.setTimeUnit(unit);
  return success();
}

/// Makes the stages of a pipeline that gives none, or makes them again.
LogicalResult remakeStages(PipelineOp pipeline, const program::ModelT *model,
                           int64_t parts) {
  Block &body = pipeline.getBody().front();
  for (auto stage : llvm::make_early_inc_range(body.getOps<StageOp>()))
    stage.erase();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  if (model)
    return makeModelStages(pipeline, *model, parts, builder);
  makeBareStages(pipeline, parts, builder);
  return success();
}

/// What goes beside a placement and an order that are given.
LogicalResult checkGiven(PipelineOp pipeline) {
  if (pipeline.getSplitBackward())
    return pipeline.emitOpError("expected no split_backward beside an order, "
                                "which says which backwards are split");
  Block &body = pipeline.getBody().front();
  if (body.getOps<DirectionOp>().empty())
    return pipeline.emitOpError("expected a chimera.direction for each "
                                "pipeline, as no schedule is named");
  if (body.getOps<OrderOp>().empty())
    return pipeline.emitOpError("expected a chimera.order for each worker, as "
                                "no schedule is named");
  return success();
}

/// The plan of the scheme that the pipeline names, for its stages.
FailureOr<schedule::Plan> makePlan(PipelineOp pipeline) {
  FailureOr<SchemeChoice> choice = schemeOf(pipeline);
  FailureOr<Layout> stages = stagesOf(pipeline);
  if (failed(choice) || failed(stages))
    return failure();
  FailureOr<schedule::Workload> work = workloadOf(pipeline, *stages);
  if (failed(work))
    return failure();
  schedule::Request request = requestOf(pipeline, choice->options);
  static_cast<schedule::Workload &>(request) = std::move(*work);
  request.recompute = recomputeOf(pipeline);
  request.memoryCaps = capsOf(pipeline);
  schedule::Made made = schedule::makePlan(*choice->scheme, request);
  if (!made.plan)
    return pipeline.emitOpError("schedule \"")
           << choice->scheme->name << "\": " << made.reason;
  if (schedule::Updates given = updatesOf(pipeline);
      schedule::stepsOverlap(given) && given != made.plan->updates)
    return pipeline.emitOpError("expected updates(")
           << stringifyUpdates(static_cast<Updates>(made.plan->updates))
           << "), which is what schedule \"" << choice->scheme->name
           << "\" does, or none, got "
           << stringifyUpdates(pipeline.getUpdates());
  return std::move(*made.plan);
}

/// Says which values were chosen for options that are open.
void setOptions(PipelineOp pipeline, const schedule::Options &chosen) {
  DictionaryAttr given = pipeline.getScheduleOptionsAttr();
  if (!given)
    return;
  Builder builder(pipeline.getContext());
  NamedAttrList options(given);
  for (auto [index, option] : llvm::enumerate(chosen.table())) {
    StringRef name(option.name);
    if (!given.contains(name))
      continue;
    if (option.words.empty())
      options.set(name, builder.getI64IntegerAttr(chosen[index]));
    else
      options.set(name, builder.getStringAttr(chosen.print(index)));
  }
  pipeline.setScheduleOptionsAttr(options.getDictionary(builder.getContext()));
}

struct Partition : impl::PartitionPassBase<Partition> {
  void runOnOperation() override {
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(partition(pipeline)))
        return signalPassFailure();
  }

  LogicalResult partition(PipelineOp pipeline) {
    if (pipeline.getBody().empty())
      pipeline.getBody().emplaceBlock();
    Block &body = pipeline.getBody().front();
    const bool isGiven = !pipeline.getSchedule();
    for (Operation &op : body)
      if (!isa<StageOp>(op) && !(isGiven && isa<DirectionOp, OrderOp>(op)))
        return op.emitOpError("expected a described pipeline, which has stages "
                              "at most, or directions and orders in place of "
                              "schedule(NAME): this one has been partitioned "
                              "already, or says both");
    FailureOr<std::unique_ptr<program::ModelT>> model = modelOf(pipeline);
    if (failed(model))
      return failure();
    if (isGiven ? failed(checkGiven(pipeline)) : failed(schemeOf(pipeline)))
      return failure();
    const bool hasStages = !body.getOps<StageOp>().empty();
    int64_t parts = 1;
    for (auto direction : body.getOps<DirectionOp>())
      parts = std::max<int64_t>(parts, direction.getBackwardParts());
    auto makeStages = [&] {
      return hasStages ? success()
                       : remakeStages(pipeline, model->get(), parts);
    };
    MachineOp machine = machineOf(pipeline);
    if (machine && failed(checkMachine(pipeline, machine, *model || hasStages)))
      return failure();
    if ((!hasStages || machine) &&
        failed(setTimeUnit(pipeline, machine  ? "ns"
                                     : *model ? "flop"
                                              : "slot")))
      return failure();
    if (failed(makeStages()))
      return failure();
    std::optional<schedule::Plan> plan;
    if (!isGiven) {
      FailureOr<schedule::Plan> made = makePlan(pipeline);
      if (failed(made))
        return failure();
      plan = std::move(*made);
      setOptions(pipeline, plan->options);
      pipeline.setUpdates(static_cast<Updates>(plan->updates));
      makeDirections(pipeline, plan->pipelines);
      parts = schedule::mostParts(plan->pipelines);
      // No part of a backward takes no time.
      if (parts > 1 && failed(makeStages()))
        return failure();
    }
    FailureOr<Layout> layout = layoutOf(pipeline);
    if (failed(layout) || failed(checkParts(pipeline, parts)) ||
        (*model && failed(checkLayers(*layout, **model))))
      return failure();
    FailureOr<schedule::Problem> problem = problemOf(pipeline);
    if (failed(problem))
      return failure();
    if (isGiven)
      return LogicalResult(readOrders(pipeline, *problem));
    writeOrders(pipeline, *problem, plan->order);
    return success();
  }
};

} // namespace
} // namespace chimera
