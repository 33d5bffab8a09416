//===- DescriptionOps.cpp - Ops of a description --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/DescriptionInterface.h"
#include "dialect/LoopCarried.h"
#include "dialect/Quantity.h"

#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;
using namespace chimera;

/// Checks the numbers of the optimizer. AdamW divides by 1 - beta^step, and by
/// a root plus epsilon. So a beta must be below 1, and epsilon must not be
/// negative. Each comparison is written so that NaN fails.
static LogicalResult verifyOptimizer(TrainingOp op) {
  auto inRange = [&](const char *name, const APFloat &attribute, bool below1) {
    double value = attribute.convertToDouble();
    if (value >= 0 && (below1 ? value < 1 : std::isfinite(value)))
      return true;
    op.emitOpError("expected ")
        << name << (below1 ? " in [0, 1)" : " of at least 0") << ", got "
        << value;
    return false;
  };
  TrainingOp::Properties defaults, &given = op.getProperties();
  TrainingOp::populateDefaultProperties(op->getName(), defaults);
  const bool isSgd = op.getOptimizer() == Optimizer::SGD;
  const bool isMuon = op.getOptimizer() == Optimizer::Muon;
  const bool isAdamW = op.getOptimizer() == Optimizer::AdamW;
  const std::tuple<const char *, bool, bool> unused[] = {
      {"beta1", isSgd, given.beta1 != defaults.beta1},
      {"beta2", isSgd, given.beta2 != defaults.beta2},
      {"epsilon", isSgd, given.epsilon != defaults.epsilon},
      {"momentum", isAdamW, given.momentum != defaults.momentum},
      {"nesterov", isAdamW, op.getNesterov()},
      {"no_muon", !isMuon, op.getNoMuon().has_value()}};
  for (auto [name, isUnused, isGiven] : unused)
    if (isUnused && isGiven)
      return op.emitOpError("expected no ")
             << name << " with optimizer(" << stringifyEnum(op.getOptimizer())
             << "), which does not use it";
  if (!(inRange("learning_rate", op.getLearningRate(), false) &&
        inRange("min_lr", op.getMinLr(), false) &&
        inRange("beta1", op.getBeta1(), true) &&
        inRange("beta2", op.getBeta2(), true) &&
        inRange("epsilon", op.getEpsilon(), false) &&
        inRange("momentum", op.getMomentum(), true) &&
        inRange("weight_decay", op.getWeightDecay().value_or(APFloat(0.0)),
                false)))
    return failure();
  if (std::optional<APFloat> limit = op.getClipNorm();
      limit && (!limit->isFinite() || !(limit->convertToDouble() > 0)))
    return op.emitOpError("expected clip_norm above 0, got ")
           << limit->convertToDouble();
  if (isMuon && op.getMomentum().isZero())
    return op.emitOpError("expected a momentum with optimizer(muon), such as "
                          "momentum(0.95), got none");
  if (op.getNesterov() && op.getMomentum().isZero())
    return op.emitOpError("expected a momentum with nesterov, got none");
  return success();
}

/// Checks that the clauses of the learning rate fit its schedule and each
/// other.
static LogicalResult verifyRateSchedule(TrainingOp op) {
  const RateSchedule schedule = op.getLrSchedule();
  const bool isConstant = schedule == RateSchedule::Constant;
  const bool isWsd = schedule == RateSchedule::WarmupStableDecay;
  const double peak = op.getLearningRate().convertToDouble();
  const double floor = op.getMinLr().convertToDouble();
  const std::tuple<const char *, bool, bool> unused[] = {
      {"min_lr", isConstant, floor != 0},
      {"lr_steps", isConstant, op.getLrSteps().has_value()},
      {"decay_steps", !isWsd, op.getDecaySteps().has_value()}};
  for (auto [name, isUnused, isGiven] : unused)
    if (isUnused && isGiven)
      return op.emitOpError("expected no ")
             << name << " with lr_schedule(" << stringifyEnum(schedule)
             << "), which does not use it";
  if (isWsd && !op.getDecaySteps())
    return op.emitOpError("expected decay_steps with lr_schedule(wsd), got "
                          "none: the number of last steps in which the rate "
                          "falls");
  if (floor > peak)
    return op.emitOpError("expected min_lr to be at most the learning_rate of ")
           << peak << ", got " << floor;
  const uint64_t changing = op.getWarmup() + op.getDecaySteps().value_or(0);
  if (op.getLrSteps() && changing > *op.getLrSteps())
    return op.emitOpError("expected lr_steps of at least ")
           << changing << ", the steps of warmup"
           << (isWsd ? " and decay_steps" : "") << ", got " << *op.getLrSteps();
  return success();
}

static LogicalResult verifyRecompute(PipelineOp op) {
  std::optional<ArrayRef<int32_t>> stages = op.getRecompute();
  if (!stages) {
    if (op.getRecomputeFused())
      return op.emitOpError(
          "expected recomputed stages with recompute_fused, got none");
    return success();
  }
  if (stages->empty())
    return op.emitOpError("expected at least one stage to recompute, or all");
  for (size_t i = 0; i < stages->size(); ++i) {
    int32_t stage = (*stages)[i];
    if (stage < 0 || stage >= static_cast<int64_t>(op.getStages()))
      return op.emitOpError("expected recomputed stages below ")
             << op.getStages() << ", got " << stage;
    if (i > 0 && stage <= (*stages)[i - 1])
      return op.emitOpError("expected ascending recomputed stages, got ")
             << stage << " after " << (*stages)[i - 1];
  }
  return success();
}

/// Fails, with a diagnostic, unless `sections` is empty, or has only a step, or
/// has a prologue, a step and an epilogue.
static LogicalResult verifySectionOrder(ArrayRef<SectionOp> sections) {
  Operation *step = nullptr;
  for (SectionOp section : sections) {
    if (!isa<StepOp>(section))
      continue;
    if (step) {
      InFlightDiagnostic error =
          section->emitOpError("expected one step in a pipeline");
      error.attachNote(step->getLoc()) << "here is another";
      return error;
    }
    step = section;
  }
  bool good = sections.size() == 3
                  ? isa<PrologueOp>(sections[0]) && sections[1] == step &&
                        isa<EpilogueOp>(sections[2])
                  : sections.empty() || (sections.size() == 1 && step);
  if (good)
    return success();
  return sections.front()->emitOpError(
      "expected a chimera.step alone or a chimera.prologue, a chimera.step and "
      "a chimera.epilogue, in this order");
}

const DescriptionInterface *
chimera::descriptionInterfaceOf(MLIRContext *context) {
  auto *dialect = context->getLoadedDialect<ChimeraDialect>();
  return dialect->getRegisteredInterface<DescriptionInterface>();
}

/// Checks which attributes of a model are given. An exported model has a
/// package in place of sizes. A bare model has a list of layers in place of
/// sizes.
static LogicalResult verifyForm(ModelOp op) {
  const bool isExported = op.getArchitecture() == kExportedModel;
  const bool isBare = op.getArchitecture() == kBareModel;
  if (isExported != op.getPackage().has_value())
    return op.emitOpError(isExported
                              ? "expected the folder of an exported model"
                              : "expected no package of a model that is not "
                                "exported");
  const bool hasLayers =
      op.getBareLayers().has_value() && !op.getBareLayersAttr().empty();
  if (isBare != hasLayers)
    return op.emitOpError(isBare ? "expected at least one layer of a bare model"
                                 : "expected no list of layers of a model that "
                                   "is not bare");
  if (hasLayers)
    for (auto layers = op.getBareLayersAttr().getValue(); !layers.empty();
         layers = layers.drop_front()) {
      auto layer = cast<LayerAttr>(layers.front());
      const bool isLast = layers.size() == 1 && layer.getCount() == 1;
      if (layer.getBoundary() == 0 && !isLast)
        return op.emitOpError(
                   "expected a boundary in every layer but the last, "
                   "got none in ")
               << layer;
    }
  const std::pair<const char *, bool> sizes[] = {
      {"layers", op.getLayers().has_value()},
      {"heads", op.getHeads().has_value()},
      {"width", op.getWidth().has_value()},
      {"context", op.getContextLength().has_value()},
      {"vocabulary", op.getVocabulary().has_value()}};
  for (auto [name, isGiven] : sizes)
    if (isGiven == (isExported || isBare))
      return op.emitOpError(isGiven ? "expected no " : "expected ")
             << name << " of "
             << (isExported ? "an exported model: its package has it"
                 : isBare   ? "a bare model: its list of layers has it"
                            : "a model");
  if ((isExported || isBare) && (op.getTied() || !op.getDropout().isZero()))
    return op.emitOpError("expected neither dropout nor tied of ")
           << (isExported ? "an exported model: its package has them"
                          : "a bare model: its layers have costs instead");
  return success();
}

LogicalResult ModelOp::verify() {
  if (failed(verifyForm(*this)))
    return failure();
  const DescriptionInterface *description =
      descriptionInterfaceOf(getContext());
  return description ? description->verify(*this) : success();
}

LogicalResult MachineOp::verify() {
  if (!getSpeed() && (!getProfile() || getProfileAttr().empty()))
    return emitOpError(
        "expected speed(…) or profile(…) for the costs of layers");
  if (usableMemory() < 1)
    return emitOpError("expected reserved to be less than the memory of ")
           << quantityText(Dimension::Bytes, getMemory()) << ", got "
           << quantityText(Dimension::Bytes, *getReserved());
  if (std::optional<uint64_t> devices = getNodeDevices();
      devices && *devices > getDevices())
    return emitOpError("expected node_devices of at most the ")
           << getDevices() << " devices, got " << *devices;
  for (std::optional<LinkAttr> link :
       {getLink(), getAllReduce(), getNodeLink(), getNodeAllReduce()})
    if (link && link->getPlaces() > 0)
      return emitOpError("expected times of links in whole nanoseconds or with "
                         "units, such as 0.5 us, got a fraction without a "
                         "unit");
  if (!getNodeDevices() && (getNodeLink() || getNodeAllReduce()))
    return emitOpError("expected node_devices, the number of devices in a "
                       "node, with ")
           << (getNodeLink() ? "node_link" : "node_all_reduce");
  if (!getNodeDevices() && getNodeCores())
    return emitOpError("expected node_devices, the number of devices that "
                       "share the cores of a node, with node_cores");
  return success();
}

LogicalResult TrainingOp::verify() {
  return failure(failed(verifyOptimizer(*this)) ||
                 failed(verifyRateSchedule(*this)));
}

LogicalResult PipelineOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getModel() &&
      !symbols.lookupNearestSymbolFrom<ModelOp>(*this, getModelAttr()))
    return emitOpError("expected a chimera.model @")
           << *getModel() << ", found none";
  if (getTraining() &&
      !symbols.lookupNearestSymbolFrom<TrainingOp>(*this, getTrainingAttr()))
    return emitOpError("expected a chimera.training @")
           << *getTraining() << ", found none";
  if (getMachine() &&
      !symbols.lookupNearestSymbolFrom<MachineOp>(*this, getMachineAttr()))
    return emitOpError("expected a chimera.machine @")
           << *getMachine() << ", found none";
  return success();
}

/// True if no phase has added anything to the pipeline yet.
static bool isInDescribedPhase(PipelineOp op) {
  return op.getBody().empty() ||
         llvm::all_of(op.getBody().front(),
                      [](auto &op) { return isa<StageOp>(op); });
}

static LogicalResult verifyTypes(PipelineOp op) {
  DataType weights = op.getWeightType();
  DataType activations = op.getActivationType().value_or(weights);
  if (activations == weights ||
      (weights == DataType::F32 && activations == DataType::BF16))
    return success();
  return op.emitOpError(
             "expected activation_type to be equal to weight_type, or "
             "bf16 with f32, got ")
         << stringifyDataType(activations) << " with "
         << stringifyDataType(weights);
}

uint32_t PipelineOp::timePlaces() {
  uint32_t places = getLinkAttr() ? getLinkAttr().getPlaces() : 0;
  if (!getBody().empty())
    for (StageOp stage : getBody().front().getOps<StageOp>())
      places = std::max(places, stage.getCost().getPlaces());
  return places;
}

bool PipelineOp::hasTimesWithUnits() {
  if (getLinkAttr() && getLinkAttr().getHasUnits())
    return true;
  return !getBody().empty() &&
         llvm::any_of(getBody().front().getOps<StageOp>(), [](StageOp stage) {
           return stage.getCost().getHasUnits();
         });
}

LogicalResult PipelineOp::verify() {
  if (failed(verifyRecompute(*this)) || failed(verifyTypes(*this)))
    return failure();
  if (getBucketBytes() && *getBucketBytes() < 8)
    return emitOpError("expected buckets of at least 8 bytes, got ")
           << *getBucketBytes();
  if (workerCount() > getStages())
    return emitOpError("expected at most as many workers as stages (")
           << getStages() << "), got " << workerCount();
  // The schedule is not known here, and parts and overlapping steps depend on
  // it. chimera-partition checks the number of actions again.
  if (failed(verifyActions(1, 1, getSplitBackward())))
    return failure();
  if (!getSchedule() && isInDescribedPhase(*this))
    return emitOpError(
        "expected schedule(NAME), or a chimera.direction for each "
        "pipeline and a chimera.order for each worker");
  if (getScheduleOptions() && !getSchedule())
    return emitOpError(
        "expected the name of a schedule with its options, got only options");
  if (const DescriptionInterface *description =
          descriptionInterfaceOf(getContext());
      description && isInDescribedPhase(*this) &&
      failed(description->verify(*this)))
    return failure();
  if (getBody().empty())
    return success();
  SmallVector<SectionOp, 3> sections;
  for (Operation &op : getBody().front()) {
    if (!isa<StageOp, DirectionOp, OrderOp, SectionOp, WorkerOp>(op))
      return op.emitOpError(
          "expected a chimera.stage, chimera.direction, "
          "chimera.order, chimera.step with its chimera.prologue and "
          "chimera.epilogue, or chimera.worker in a "
          "pipeline");
    if (auto section = dyn_cast<SectionOp>(op))
      sections.push_back(section);
    if (isa<OrderOp>(op) && !getBody().front().getOps<WorkerOp>().empty())
      return op.emitOpError("expected no chimera.order after chimera-project: "
                            "workers have the order");
  }
  return verifySectionOrder(sections);
}

LogicalResult PipelineOp::verifyActions(int64_t steps, int64_t parts,
                                        bool areSplit) {
  // The most actions that can be compiled. A step with this many takes a minute
  // and some gigabytes.
  constexpr int64_t kMost = int64_t{1} << 22;
  int64_t backwards = 1 + areSplit + getRecompute().has_value();
  int64_t each = steps * (1 + parts * backwards);
  int64_t cells = static_cast<int64_t>(getStages() * getMicroBatches());
  if (cells * each <= kMost)
    return success();
  return emitOpError("expected at most ")
         << kMost << " actions, got " << cells * each << ": " << each
         << " for each of " << getStages() << " stages and "
         << getMicroBatches() << " micro-batches";
}

LogicalResult PipelineOp::verifyRegions() {
  if (hasTimesWithUnits() && getTimeUnit().value_or("ns") != "ns")
    return emitOpError("expected time_unit(ns) or none with times that have "
                       "units, got ")
           << *getTimeUnit();
  SmallVector<Block *, 3> blocks;
  Operation *step = nullptr;
  if (!getBody().empty())
    for (auto section : getBody().front().getOps<SectionOp>()) {
      blocks.push_back(&section.getBody().front());
      if (isa<StepOp>(section))
        step = section;
    }
  return step ? verifyLoopCarried(step, blocks) : success();
}

LogicalResult StageOp::verify() {
  if (getFirst().has_value() != getLast().has_value())
    return emitOpError("expected both ends of the layers or none");
  if (getFirst() && *getFirst() >= *getLast())
    return emitOpError("expected layers [first, last) with first < last, got [")
           << *getFirst() << ", " << *getLast() << ")";
  return success();
}

SmallVector<int32_t> DirectionOp::forwardCounts() {
  if (getForwards())
    return SmallVector<int32_t>(*getForwards());
  return SmallVector<int32_t>(getMicroBatches().size(), 1);
}

LogicalResult DirectionOp::verify() {
  for (int32_t worker : getPlacement())
    if (worker < 0)
      return emitOpError("expected workers of at least 0, got ") << worker;
  ArrayRef<int32_t> batches = getMicroBatches();
  for (size_t i = 0; i < batches.size(); ++i)
    if (batches[i] < 0 || (i > 0 && batches[i] <= batches[i - 1]))
      return emitOpError("expected ascending micro-batches, got ")
             << batches[i] << " at position " << i;
  size_t first = 0;
  for (int32_t count : forwardCounts()) {
    if (count < 1 || static_cast<size_t>(count) > batches.size() - first)
      return emitOpError("expected forwards that cover ")
             << batches.size() << " micro-batches, got one of " << count
             << " after the first " << first;
    if (batches[first + count - 1] - batches[first] != count - 1)
      return emitOpError(
                 "expected consecutive micro-batches in a forward, got ")
             << batches.slice(first, count);
    first += count;
  }
  if (first != batches.size())
    return emitOpError("expected forwards that cover ")
           << batches.size() << " micro-batches, got " << first;
  return success();
}

ParseResult OrderOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  if (parser.parseAttribute(properties.worker,
                            parser.getBuilder().getI32Type()))
    return failure();
  // The location of the op is the location of the text, so that errors can
  // point to a word.
  result.location = parser.getEncodedSourceLoc(parser.getCurrentLocation());
  return failure(parser.parseAttribute(properties.actions) ||
                 parser.parseOptionalAttrDict(result.attributes));
}

void OrderOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getWorker() << ' ' << getActionsAttr();
  printer.printOptionalAttrDict((*this)->getAttrs(), getAttributeNames());
}

Location OrderOp::locationOf(size_t at) {
  auto start = dyn_cast<FileLineColLoc>(Location(getLoc()));
  if (!start)
    return getLoc();
  // `start` is the location of the opening quote.
  return FileLineColLoc::get(start.getFilename(), start.getLine(),
                             start.getColumn() + 1 + at);
}
