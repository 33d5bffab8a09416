//===- Partition.cpp - Model to stages and directions ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Cut.h"
#include "compiler/schedule/MakePlan.h"
#include "passes/Passes.h"
#include "passes/describe/Bridge.h"
#include "passes/describe/CostInputs.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Passes.h.inc"

namespace {

/// Makes stages for a pipeline without a model.
void makeBareStages(PipelineOp pipeline, int64_t parts, OpBuilder &builder) {
  for (uint32_t s = 0; s < pipeline.getStages(); ++s)
    builder.create<StageOp>(pipeline.getLoc(), s, IntegerAttr(), IntegerAttr(),
                            assumedCost(builder.getContext(), parts),
                            assumedBytes(builder.getContext()));
}

/// The cost in the dialect's short form. This form omits the times that the
/// dialect can derive: halves that are equal and add up to the backward, and a
/// recompute that is as long as a forward.
CostAttr costOf(MLIRContext *context, const schedule::StageCost &cost) {
  auto get = [&](int64_t input, int64_t weight, int64_t recompute) {
    return CostAttr::get(context, cost.forward, cost.backward, input, weight,
                         recompute, cost.update, cost.pairedForward.value_or(0),
                         cost.joinedWeightGradient.value_or(0),
                         /*has_units=*/false,
                         /*places=*/0);
  };
  CostAttr derived = get(0, 0, 0);
  bool areHalves = cost.inputGradient == derived.inputGradientTime() &&
                   cost.weightGradient == derived.weightGradientTime();
  return get(areHalves ? 0 : cost.inputGradient,
             areHalves ? 0 : cost.weightGradient,
             cost.recompute == derived.recomputeTime() ? 0 : cost.recompute);
}

BytesAttr bytesOf(MLIRContext *context, const schedule::StageBytes &bytes) {
  return BytesAttr::get(context, bytes.weights, bytes.optimizer, bytes.stash,
                        bytes.boundary, bytes.parameterCopy, bytes.weightStash);
}

LogicalResult makeModelStages(PipelineOp pipeline, const cost::Model &model,
                              int64_t parts, OpBuilder &builder) {
  auto stages = static_cast<int64_t>(pipeline.getStages());
  auto batch = static_cast<int64_t>(pipeline.getMicroBatchSize());
  std::optional<cost::Machine> named;
  if (MachineOp op = machineOf(pipeline)) {
    FailureOr<cost::Machine> read = costMachineOf(op);
    if (failed(read))
      return failure();
    named = std::move(*read);
  }
  const cost::Machine *machine = named ? &*named : nullptr;
  std::string problem = cost::checkCut(model.layerCount(), stages);
  if (problem.empty())
    problem = model.check(batch, parts, machine);
  if (!problem.empty())
    return pipeline.emitOpError(problem);
  cost::LayerTable table = model.table(batch, parts, machine);
  for (auto [index, stage] :
       llvm::enumerate(cost::cutIntoStages(table, static_cast<int32_t>(stages),
                                           recomputeOf(pipeline), parts))) {
    // A stage of a bare model has no layer numbers, because it is not trained.
    IntegerAttr first, end;
    if (model.trainable()) {
      first = builder.getI32IntegerAttr(stage.first);
      end = builder.getI32IntegerAttr(stage.end);
    }
    builder.create<StageOp>(pipeline.getLoc(), index, first, end,
                            costOf(builder.getContext(), stage.cost),
                            bytesOf(builder.getContext(), stage.bytes));
  }
  return success();
}

/// Fails unless the given stages have the model's layers, each once and in
/// order, and the bytes of these layers.
LogicalResult checkLayers(const Layout &layout,
                          const program::PackageT &model) {
  uint32_t next = 0, layers = program::layerCount(model);
  for (StageOp stage : layout.stages) {
    if (!stage.getFirst() || *stage.getFirst() != next)
      return stage.emitOpError("expected layers from ")
             << next << " on, the first layer that no earlier stage has";
    next = *stage.getLast();
  }
  if (StageOp last = layout.stages.back(); next != layers)
    return last.emitOpError("expected layers up to ")
           << layers
           << ", the number of the model's layers with embedding and head, got "
           << next;
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

/// Fails unless each part of a backward has a whole number of samples, and its
/// gradient a whole number of bytes.
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

/// Fails if the pipeline needs more devices than the machine has, if it has no
/// costs, or if its costs are in another unit than the machine's nanoseconds.
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
    return pipeline.emitOpError(
               "expected time_unit(ns), the unit of a machine's "
               "times, got ")
           << *pipeline.getTimeUnit();
  return success();
}

/// Sets the unit of the costs that partition computes. Fails if the description
/// states another unit.
LogicalResult setTimeUnit(PipelineOp pipeline, StringRef unit) {
  if (std::optional<StringRef> given = pipeline.getTimeUnit();
      given && *given != unit)
    return pipeline.emitOpError("expected time_unit(")
           << unit << ") or no time_unit, got " << *given
           << ": the pipeline gives no costs of stages, so they are computed";
  pipeline.setTimeUnit(unit);
  return success();
}

/// Makes the stages of a pipeline. If an earlier call made stages, replaces
/// them.
LogicalResult remakeStages(PipelineOp pipeline,
                           const std::optional<cost::Model> &model,
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

/// Checks a pipeline whose description states placement and order. Fails if one
/// of the two is missing, or if a clause contradicts them.
LogicalResult checkGiven(PipelineOp pipeline) {
  if (pipeline.getSplitBackward())
    return pipeline.emitOpError(
        "expected no split_backward with an order, which "
        "says which backwards are split");
  Block &body = pipeline.getBody().front();
  if (body.getOps<DirectionOp>().empty())
    return pipeline.emitOpError("expected a chimera.direction for each "
                                "pipeline, as no schedule is named");
  if (body.getOps<OrderOp>().empty())
    return pipeline.emitOpError("expected a chimera.order for each worker, as "
                                "no schedule is named");
  return success();
}

/// The plan that the pipeline's scheme makes for its stages.
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
  schedule::PlanOrError made = schedule::makePlan(*choice->scheme, request);
  if (!made.plan)
    return pipeline.emitOpError("schedule \"")
           << choice->scheme->name << "\": " << made.reason;
  if (schedule::Updates given = updatesOf(pipeline);
      schedule::stepsOverlap(given) && given != made.plan->updates)
    return pipeline.emitOpError("expected updates(")
           << stringifyUpdates(static_cast<Updates>(made.plan->updates))
           << "), as schedule \"" << choice->scheme->name
           << "\" updates weights, or no updates clause, got "
           << stringifyUpdates(pipeline.getUpdates());
  return std::move(*made.plan);
}

/// Replaces the schedule options of the description by the values that the
/// scheme chose. Options that the description does not give are left out.
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
        return op.emitOpError("expected a pipeline with stages only, or with "
                              "directions and orders but no schedule(NAME): "
                              "this one is partitioned already, or has both");
    FailureOr<std::optional<cost::Model>> model = costModelOf(pipeline);
    if (failed(model))
      return failure();
    if (isGiven ? failed(checkGiven(pipeline)) : failed(schemeOf(pipeline)))
      return failure();
    const bool hasStages = !body.getOps<StageOp>().empty();
    int64_t parts = 1;
    for (auto direction : body.getOps<DirectionOp>())
      parts = std::max<int64_t>(parts, direction.getBackwardParts());
    auto makeStages = [&] {
      return hasStages ? success() : remakeStages(pipeline, *model, parts);
    };
    MachineOp machine = machineOf(pipeline);
    if (machine && failed(checkMachine(pipeline, machine,
                                       model->has_value() || hasStages)))
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
      parts = schedule::maxParts(plan->pipelines);
      // The stages were made for backwards without parts. With parts, stages
      // have other costs and sizes, so make the stages again.
      if (parts > 1 && failed(makeStages()))
        return failure();
    }
    FailureOr<Layout> layout = layoutOf(pipeline);
    if (failed(layout) || failed(checkParts(pipeline, parts)) ||
        (*model && (*model)->trainable() &&
         failed(checkLayers(*layout, *(*model)->trainable()))))
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
