//===- DescriptionReader.cpp - Reading a description ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/describe/DescriptionReader.h"

#include "compiler/schedule/MakePlan.h"
#include "dialect/Decimal.h"
#include "dialect/DescriptionInterface.h"
#include "dialect/Spelling.h"
#include "runtime/program/CheckStages.h"
#include "runtime/program/Gpt2Package.h"
#include "runtime/program/Optimizer.h"
#include "runtime/program/Output.h"
#include "runtime/program/Printable.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

#include <numeric>
#include <tuple>

using namespace mlir;

namespace chimera {

std::string pathFrom(Operation *op, StringRef path) {
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place || llvm::sys::path::is_absolute(path))
    return path.str();
  SmallString<128> whole = llvm::sys::path::parent_path(place.getFilename());
  llvm::sys::path::append(whole, path);
  return whole.str().str();
}

StringRef inputAt(ModuleOp module, StringRef path) {
  auto isAt = [&](StringRef file) {
    return program::areSameFile(path.str(), file.str());
  };
  auto source = dyn_cast<FileLineColLoc>(module.getLoc());
  if (source && isAt(source.getFilename()))
    return "the input";
  for (auto machine : module.getOps<MachineOp>())
    if (ArrayAttr profiles = machine.getProfileAttr())
      for (auto profile : profiles.getAsValueRange<StringAttr>())
        if (isAt(pathFrom(machine, profile)))
          return "a profile that is read";
  for (auto model : module.getOps<ModelOp>())
    if (std::optional<StringRef> package = model.getPackage()) {
      SmallString<128> file(pathFrom(model, *package));
      llvm::sys::path::append(file, program::kPackageFile);
      if (isAt(file))
        return "a package that is read";
    }
  return {};
}

FailureOr<std::unique_ptr<program::PackageT>>
modelOf(ModelOp op, std::optional<program::DataType> type) {
  std::unique_ptr<program::PackageT> model;
  std::string error;
  // The op has no larger numbers than 2^31 - 1.
  auto size = [](std::optional<uint64_t> number) {
    return static_cast<uint32_t>(*number);
  };
  if (op.getPackage())
    model = program::readPackage(pathFrom(op, *op.getPackage()), type, error);
  else if (op.getArchitecture() == kGpt2Model)
    model =
        program::gpt2Package({.layers = size(op.getLayers()),
                              .heads = size(op.getHeads()),
                              .width = size(op.getWidth()),
                              .context = size(op.getContextLength()),
                              .vocabulary = size(op.getVocabulary()),
                              .dropout = op.getDropout().convertToDouble(),
                              .tied = op.getTied()},
                             type.value_or(program::DataType::Float32), error);
  else
    error = ("expected architecture '" + kGpt2Model + "' or '" +
             kExportedModel + "', got '" + op.getArchitecture() + "'")
                .str();
  if (!model)
    return op.emitOpError(program::printable(error));
  return model;
}

FailureOr<ModelOp> modelOpOf(PipelineOp pipeline) {
  if (!pipeline.getModel())
    return ModelOp();
  if (auto op = SymbolTable::lookupNearestSymbolFrom<ModelOp>(
          pipeline, pipeline.getModelAttr()))
    return op;
  return pipeline.emitOpError("expected a chimera.model @")
         << *pipeline.getModel() << ", found none";
}

FailureOr<std::unique_ptr<program::PackageT>> modelOf(PipelineOp pipeline) {
  FailureOr<ModelOp> op = modelOpOf(pipeline);
  if (failed(op))
    return failure();
  if (!*op || op->getBareLayers())
    return std::unique_ptr<program::PackageT>();
  return modelOf(*op, typesOf(pipeline).activations);
}

LogicalResult checkModelStage(StageOp stage, const program::PackageT &model) {
  auto pipeline = stage->getParentOfType<PipelineOp>();
  uint32_t layers = program::layerCount(model);
  if (!stage.getFirst() || *stage.getLast() > layers)
    return stage.emitOpError("expected layers of a model of ")
           << layers << " with embedding and head";
  BytesAttr bytes = stage.getBytes();
  program::Stage sizes;
  sizes.mutate_first_layer(*stage.getFirst());
  sizes.mutate_layers(*stage.getLast() - *stage.getFirst());
  sizes.mutate_weights_bytes(bytes.getWeights());
  sizes.mutate_copy_bytes(bytes.getCopy());
  sizes.mutate_optimizer_bytes(bytes.getOptimizer());
  sizes.mutate_boundary_bytes(bytes.getBoundary());
  std::string problem = program::checkBytes(
      model, typesOf(pipeline), optimizerOf(pipeline),
      static_cast<uint32_t>(pipeline.getMicroBatchSize()), sizes);
  return problem.empty() ? success() : stage.emitOpError(problem);
}

static program::DataType typeOf(DataType type) {
  switch (type) {
  case DataType::F32:
    return program::DataType::Float32;
  case DataType::F64:
    return program::DataType::Float64;
  case DataType::BF16:
    return program::DataType::BFloat16;
  }
  llvm_unreachable("a type of values");
}

TrainingOp::Properties trainingOf(PipelineOp pipeline) {
  if (FlatSymbolRefAttr name = pipeline.getTrainingAttr())
    if (auto op =
            SymbolTable::lookupNearestSymbolFrom<TrainingOp>(pipeline, name))
      return op.getProperties();
  TrainingOp::Properties defaults;
  TrainingOp::populateDefaultProperties(
      OperationName(TrainingOp::getOperationName(), pipeline.getContext()),
      defaults);
  return defaults;
}

program::Types typesOf(PipelineOp pipeline) {
  DataType weights = pipeline.getWeightType();
  return {typeOf(weights),
          typeOf(pipeline.getActivationType().value_or(weights))};
}

static const char *nameOf(const TrainingOp::Properties &training) {
  switch (training.optimizer.getValue()) {
  case Optimizer::AdamW:
    return program::kAdamW;
  case Optimizer::Muon:
    return program::kMuon;
  case Optimizer::SGD:
    return training.momentum.getValue().isZero() ? program::kSgd
                                                 : program::kSgdMomentum;
  }
  llvm_unreachable("an optimizer");
}

/// The default of PyTorch's optimizer.
static double defaultWeightDecay(Optimizer optimizer) {
  switch (optimizer) {
  case Optimizer::AdamW:
    return 0.01;
  case Optimizer::Muon:
    return 0.1;
  case Optimizer::SGD:
    return 0;
  }
  llvm_unreachable("an optimizer");
}

static program::RateSchedule rateScheduleOf(RateSchedule schedule) {
  switch (schedule) {
  case RateSchedule::Constant:
    return program::RateSchedule::Constant;
  case RateSchedule::Linear:
    return program::RateSchedule::Linear;
  case RateSchedule::Cosine:
    return program::RateSchedule::Cosine;
  case RateSchedule::WarmupStableDecay:
    return program::RateSchedule::WarmupStableDecay;
  }
  llvm_unreachable("a schedule of the learning rate");
}

/// The number of steps in an attribute. 0 if it is null.
static uint64_t stepsOf(IntegerAttr steps) {
  return steps ? static_cast<uint64_t>(steps.getInt()) : 0;
}

/// The texts of a list, which may be null.
static std::vector<std::string> textsOf(ArrayAttr list) {
  std::vector<std::string> texts;
  if (list)
    for (auto text : list.getAsRange<StringAttr>())
      texts.push_back(text.str());
  return texts;
}

program::OptimizerT optimizerOf(PipelineOp pipeline) {
  const TrainingOp::Properties training = trainingOf(pipeline);
  program::OptimizerT optimizer;
  optimizer.name = nameOf(training);
  optimizer.learning_rate = training.learning_rate.getValueAsDouble();
  optimizer.beta1 = training.beta1.getValueAsDouble();
  optimizer.beta2 = training.beta2.getValueAsDouble();
  optimizer.epsilon = training.epsilon.getValueAsDouble();
  optimizer.weight_decay =
      training.weight_decay ? training.weight_decay.getValueAsDouble()
                            : defaultWeightDecay(training.optimizer.getValue());
  optimizer.lr_schedule = rateScheduleOf(training.lr_schedule.getValue());
  optimizer.warmup = stepsOf(training.warmup);
  optimizer.min_lr = training.min_lr.getValueAsDouble();
  optimizer.decay_steps = stepsOf(training.decay_steps);
  optimizer.lr_steps = stepsOf(training.lr_steps);
  optimizer.momentum = training.momentum.getValueAsDouble();
  optimizer.nesterov = training.nesterov != nullptr;
  if (training.clip_norm)
    optimizer.clip_norm = training.clip_norm.getValueAsDouble();
  optimizer.no_decay = textsOf(training.no_decay);
  optimizer.no_muon = textsOf(training.no_muon);
  return optimizer;
}

FailureOr<const schedule::TimeUnit *> timeUnitOf(PipelineOp pipeline) {
  const std::optional<StringRef> name = pipeline.getTimeUnit();
  const schedule::TimeUnit *unit = &schedule::timeUnits().front();
  if (name)
    unit = schedule::findTimeUnit(std::string_view(*name));
  else if (pipeline.hasTimesWithUnits())
    unit = schedule::findTimeUnit("ns");
  if (!unit)
    return pipeline.emitOpError("expected time_unit to be one of ")
           << schedule::timeUnitNames() << ", got \"" << *name << "\"";
  if (pipeline.timePlaces() > 0 && (unit->isDuration || pipeline.getMachine()))
    return pipeline.emitOpError(
        "expected no times with fractions if times are durations: give all "
        "times units, such as 0.5 ms, and leave out time_unit");
  return unit;
}

int64_t ticksOf(int64_t time, uint32_t places, int64_t perUnit) {
  __extension__ using Wide = __int128;
  const Wide ticks = static_cast<Wide>(time) * perUnit / powerOfTen(places);
  return ticks > INT64_MAX ? INT64_MAX : static_cast<int64_t>(ticks);
}

int64_t ticksPerUnit(PipelineOp pipeline) {
  const int64_t finest = powerOfTen(pipeline.timePlaces());
  if (finest == 1)
    return 1;
  int64_t common = finest;
  auto add = [&](const auto &attribute, std::initializer_list<int64_t> times) {
    for (int64_t time : times)
      common = std::gcd(common, ticksOf(time, attribute.getPlaces(), finest));
  };
  for (StageOp stage : pipeline.getBody().getOps<StageOp>()) {
    CostAttr cost = stage.getCost();
    add(cost,
        {cost.getForward(), cost.getBackward(), cost.inputGradientTime(),
         cost.weightGradientTime(), cost.recomputeTime(), cost.getUpdate(),
         cost.getPairedForward(), cost.getJoinedWeightGradient()});
  }
  if (LinkAttr link = pipeline.getLinkAttr())
    add(link,
        {link.getLatency(), link.timePerMib(), link.getSend(),
         link.sendTimePerMib(), link.getReceive(), link.receiveTimePerMib()});
  return finest / common;
}

MachineOp machineOf(PipelineOp pipeline) {
  FlatSymbolRefAttr name = pipeline.getMachineAttr();
  return name ? SymbolTable::lookupNearestSymbolFrom<MachineOp>(pipeline, name)
              : MachineOp();
}

std::optional<uint64_t> capOf(PipelineOp pipeline) {
  if (std::optional<uint64_t> cap = pipeline.getMemoryCap())
    return cap;
  if (MachineOp machine = machineOf(pipeline))
    return machine.usableMemory();
  return std::nullopt;
}

std::vector<int64_t> capsOf(PipelineOp pipeline) {
  std::vector<int64_t> caps;
  if (std::optional<uint64_t> cap = capOf(pipeline))
    caps.assign(pipeline.workerCount(), static_cast<int64_t>(*cap));
  return caps;
}

CostAttr assumedCost(MLIRContext *context, int64_t parts) {
  return CostAttr::get(context, 1, parts, parts, parts, parts > 1 ? parts : 0,
                       /*update=*/0, /*paired_forward=*/0,
                       /*joined_weight_gradient=*/0, /*has_units=*/false,
                       /*places=*/0);
}

BytesAttr assumedBytes(MLIRContext *context) {
  constexpr int64_t kBytes = 64;
  return BytesAttr::get(context, kBytes, 2 * kBytes, kBytes, kBytes, /*copy=*/0,
                        /*weight_stash=*/0);
}

/// True if both attributes have the same times. A time that an attribute does
/// not state has its default.
static bool areEqual(CostAttr left, CostAttr right) {
  auto times = [](CostAttr cost) {
    return std::tuple(cost.getForward(), cost.getBackward(),
                      cost.inputGradientTime(), cost.weightGradientTime(),
                      cost.recomputeTime(), cost.getUpdate(),
                      cost.getPairedForward(), cost.getJoinedWeightGradient());
  };
  return left.getPlaces() == right.getPlaces() && times(left) == times(right);
}

/// True if both attributes have the same sizes. A size that an attribute does
/// not state has its default.
static bool areEqual(BytesAttr left, BytesAttr right) {
  auto sizes = [](BytesAttr bytes) {
    return std::tuple(bytes.getWeights(), bytes.getOptimizer(),
                      bytes.getStash(), bytes.getBoundary(), bytes.getCopy(),
                      bytes.weightStashBytes());
  };
  return sizes(left) == sizes(right);
}

bool hasAssumedStages(PipelineOp pipeline) {
  if (pipeline.getModel() || pipeline.getBody().empty())
    return false;
  Block &body = pipeline.getBody().front();
  int64_t parts = 1;
  for (auto direction : body.getOps<DirectionOp>())
    parts = std::max<int64_t>(parts, direction.getBackwardParts());
  CostAttr cost = assumedCost(pipeline.getContext(), parts);
  BytesAttr bytes = assumedBytes(pipeline.getContext());
  return !body.getOps<StageOp>().empty() &&
         llvm::all_of(body.getOps<StageOp>(), [&](StageOp stage) {
           return areEqual(stage.getCost(), cost) &&
                  areEqual(stage.getBytes(), bytes);
         });
}

std::optional<std::string> optionText(Attribute value) {
  if (auto word = dyn_cast<StringAttr>(value))
    return word.str();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return std::to_string(number.getInt());
  return std::nullopt;
}

schedule::Request requestOf(PipelineOp pipeline, schedule::Options options) {
  schedule::Request request;
  request.workers = static_cast<int32_t>(pipeline.workerCount());
  request.stages.resize(pipeline.getStages());
  request.microBatches = static_cast<int32_t>(pipeline.getMicroBatches());
  request.splitBackward = pipeline.getSplitBackward();
  request.options = std::move(options);
  return request;
}

FailureOr<SchemeChoice> schemeOf(PipelineOp pipeline) {
  if (!pipeline.getSchedule())
    return pipeline.emitOpError("expected schedule(NAME)");
  StringRef name = *pipeline.getSchedule();
  SchemeChoice choice{schedule::findScheme(std::string_view(name)), {}};
  if (!choice.scheme) {
    InFlightDiagnostic error =
        pipeline.emitOpError("expected one of the schedules ")
        << schedule::schemeNames() << ", got \"" << program::printable(name)
        << "\"";
    if (std::string hint =
            schedule::hintForUnknownScheme(std::string_view(name));
        !hint.empty())
      return error << hint;
    SmallVector<StringRef> names;
    for (const schedule::Scheme &scheme : schedule::schemes())
      names.push_back(scheme.name);
    if (StringRef nearest = mostSimilarWord(names, name); !nearest.empty())
      error << ": did you mean " << nearest << "?";
    return error;
  }
  auto refuse = [&](const std::string &error) {
    return pipeline.emitOpError("schedule \"")
           << choice.scheme->name << "\" (" << choice.scheme->needs
           << "): " << error;
  };
  choice.options = schedule::Options(choice.scheme->options);
  if (DictionaryAttr options = pipeline.getScheduleOptionsAttr())
    for (NamedAttribute option : options) {
      std::optional<std::string> text = optionText(option.getValue());
      if (!text)
        return pipeline.emitOpError("expected an integer or a string for the "
                                    "schedule's option ")
               << option.getName() << ", got " << option.getValue();
      std::string error = choice.options.set(
          std::string_view(option.getName().strref()), *text);
      if (!error.empty())
        return refuse(error);
    }
  std::string error =
      schedule::planError(*choice.scheme, requestOf(pipeline, choice.options));
  if (!error.empty())
    return refuse(error);
  return choice;
}

std::vector<schedule::Recompute> recomputeOf(PipelineOp pipeline) {
  if (!pipeline.getRecompute())
    return {};
  std::vector<schedule::Recompute> stages(pipeline.getStages(),
                                          schedule::Recompute::None);
  for (int32_t stage : pipeline.getRecomputeAttr().asArrayRef())
    stages[stage] = pipeline.getRecomputeFused() ? schedule::Recompute::Fused
                                                 : schedule::Recompute::Early;
  return stages;
}

schedule::Updates updatesOf(PipelineOp pipeline) {
  // The cast below requires that both enums have the same numbers.
  static_assert(static_cast<int>(schedule::Updates::Flush) ==
                    static_cast<int>(Updates::Flush) &&
                static_cast<int>(schedule::Updates::EachMicroBatch) ==
                    static_cast<int>(Updates::EachMicroBatch) &&
                static_cast<int>(schedule::Updates::EachStep) ==
                    static_cast<int>(Updates::EachStep));
  return static_cast<schedule::Updates>(pipeline.getUpdates());
}

StringRef scheduleNameOf(PipelineOp pipeline) {
  return pipeline.getSchedule().value_or("given");
}

} // namespace chimera
