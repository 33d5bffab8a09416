//===- PlanDescription.cpp - Questions and plans as modules ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/PlanDescription.h"

#include "passes/describe/CostInputs.h"
#include "passes/describe/DescriptionReader.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace chimera {

/// The op with this name. If `name` is empty, the only op of this kind, or a
/// null op if there is none and it is not required. `example` is for the
/// diagnostic.
template <typename Op>
static FailureOr<Op> findOp(ModuleOp module, StringRef what, StringRef name,
                            bool isRequired, StringRef example) {
  SmallVector<Op> all(module.getOps<Op>());
  for (Op op : all)
    if (op.getSymName() == name)
      return op;
  if (name.empty() && all.size() == 1)
    return all.front();
  if (name.empty() && all.empty() && !isRequired)
    return Op();
  if (all.empty())
    return module.emitError("expected a chimera.")
           << what << ", found none. One is described by, for example,\n"
           << example;
  InFlightDiagnostic error = module.emitError("expected --")
                             << what << " to name ";
  if (all.size() == 1)
    error << "the module's only chimera." << what;
  else
    error << "one of the module's " << all.size() << " chimera." << what
          << " ops";
  error << ", got " << (name.empty() ? "none" : "@" + name);
  for (Op op : all)
    error.attachNote(op.getLoc()) << "here is @" << op.getSymName();
  return error;
}

FailureOr<PlannerOps> findPlannerOps(ModuleOp module, StringRef model,
                                     StringRef machine, StringRef training) {
  auto models = findOp<ModelOp>(
      module, "model", model, true,
      "chimera.model @gpt2 gpt2 layers(24) heads(16) width(1024) "
      "context(1024) vocabulary(50257)");
  if (failed(models))
    return failure();
  auto machines = findOp<MachineOp>(
      module, "machine", machine, true,
      "chimera.machine @cluster devices(32) memory(40 GiB) "
      "speed(\"50 TFLOP/s\") reserved(4 GiB) memory_bandwidth(\"1.2 TB/s\") "
      "link <latency = 10 us, bandwidth = \"10 GB/s\">");
  if (failed(machines))
    return failure();
  auto trainings = findOp<TrainingOp>(module, "training", training, false,
                                      "chimera.training @plainly "
                                      "optimizer(sgd)");
  if (failed(trainings))
    return failure();
  PlannerOps ops;
  ops.model = *models;
  ops.machine = *machines;
  ops.training = *trainings;
  return ops;
}

/// "plan", or "plan2", "plan3", … if one of `ops` has that name.
static std::string freeName(PlannerOps ops) {
  auto isTaken = [&](StringRef name) {
    TrainingOp training = ops.training;
    return name == ops.model.getSymName() || name == ops.machine.getSymName() ||
           (training && name == training.getSymName());
  };
  std::string name = "plan";
  for (int number = 2; isTaken(name); ++number)
    name = "plan" + std::to_string(number);
  return name;
}

/// A pipeline with one stage and one micro-batch that uses `ops`.
static PipelineOp makePipeline(OpBuilder &builder, PlannerOps ops) {
  OperationState state(ops.model.getLoc(), PipelineOp::getOperationName());
  PipelineOp::Properties &properties =
      state.getOrAddProperties<PipelineOp::Properties>();
  PipelineOp::populateDefaultProperties(state.name, properties);
  MLIRContext *context = builder.getContext();
  properties.sym_name = builder.getStringAttr(freeName(ops));
  properties.model = FlatSymbolRefAttr::get(ops.model.getSymNameAttr());
  properties.machine = FlatSymbolRefAttr::get(ops.machine.getSymNameAttr());
  if (TrainingOp training = ops.training)
    properties.training = FlatSymbolRefAttr::get(training.getSymNameAttr());
  properties.weight_type =
      DataTypeAttr::get(context, ops.weights.value_or(DataType::F32));
  if (ops.activations)
    properties.activation_type = DataTypeAttr::get(context, *ops.activations);
  properties.stages = builder.getI64IntegerAttr(1);
  properties.micro_batches = builder.getI64IntegerAttr(1);
  state.addRegion();
  return cast<PipelineOp>(builder.create(state));
}

/// A module with copies of `ops` and no pipeline, and a builder at its end.
static std::pair<OwningOpRef<ModuleOp>, OpBuilder> moduleOf(PlannerOps ops) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(ops.model.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  builder.clone(*ops.machine);
  builder.clone(*ops.model);
  if (ops.training)
    builder.clone(*ops.training);
  return {std::move(module), builder};
}

FailureOr<cost::Model> costModelOf(PlannerOps ops) {
  auto [module, builder] = moduleOf(ops);
  FailureOr<std::optional<cost::Model>> model =
      costModelOf(makePipeline(builder, ops));
  if (failed(model))
    return failure();
  return std::move(**model);
}

/// The absolute path of a file that `op` names.
static std::string absolutePath(Operation *op, StringRef path) {
  llvm::SmallString<128> whole(pathFrom(op, path));
  llvm::sys::fs::make_absolute(whole);
  return whole.str().str();
}

/// Makes the file names in the ops of `module` absolute. These ops are copies
/// of `ops`. A relative file name in `ops` is relative to the folder of the
/// module of `ops`.
static void makePathsAbsolute(ModuleOp module, PlannerOps ops) {
  for (auto model : module.getOps<ModelOp>())
    if (std::optional<StringRef> package = model.getPackage())
      model.setPackage(absolutePath(ops.model, *package));
  for (auto machine : module.getOps<MachineOp>())
    if (ArrayAttr profiles = machine.getProfileAttr()) {
      SmallVector<Attribute> paths;
      for (auto profile : profiles.getAsValueRange<StringAttr>())
        paths.push_back(StringAttr::get(module.getContext(),
                                        absolutePath(ops.machine, profile)));
      machine.setProfileAttr(ArrayAttr::get(module.getContext(), paths));
    }
}

std::string describePlan(PlannerOps ops, const plan::Proposal &proposal,
                         int64_t bucketBytes) {
  auto [module, builder] = moduleOf(ops);
  PipelineOp pipeline = makePipeline(builder, ops);
  const plan::Choice &choice = proposal.choice;
  pipeline.setStages(choice.stages);
  pipeline.setMicroBatches(choice.microBatches);
  pipeline.setSchedule(StringRef(choice.scheme->name));
  NamedAttrList options;
  for (auto [index, option] : llvm::enumerate(choice.options.table())) {
    if (!choice.options.isSet(index))
      continue;
    if (option.words.empty())
      options.set(StringRef(option.name),
                  builder.getI64IntegerAttr(choice.options[index]));
    else
      options.set(StringRef(option.name),
                  builder.getStringAttr(choice.options.print(index)));
  }
  if (!options.empty())
    pipeline.setScheduleOptionsAttr(
        options.getDictionary(builder.getContext()));
  if (choice.stages != choice.workers)
    pipeline.setWorkers(choice.workers);
  pipeline.setMicroBatchSize(choice.microBatchSize);
  pipeline.setDataParallel(choice.width);
  pipeline.setSplitBackward(choice.splitBackward);
  SmallVector<int32_t> recomputed;
  for (auto [stage, how] : llvm::enumerate(proposal.recompute))
    if (how != schedule::Recompute::None)
      recomputed.push_back(static_cast<int32_t>(stage));
  if (!recomputed.empty()) {
    pipeline.setRecompute(recomputed);
    pipeline.setRecomputeFused(proposal.recompute[recomputed.front()] ==
                               schedule::Recompute::Fused);
  }
  switch (proposal.policy) {
  case schedule::AllReducePolicy::Lazy:
    break;
  case schedule::AllReducePolicy::Eager:
    pipeline.setAllReduce(AllReducePolicy::Eager);
    break;
  case schedule::AllReducePolicy::EagerOpt:
    pipeline.setAllReduce(AllReducePolicy::EagerOpt);
    break;
  }
  if (bucketBytes > 0)
    pipeline.setBucketBytes(bucketBytes);
  makePathsAbsolute(*module, ops);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Operation &op : *module->getBody())
    os << op << "\n";
  return text;
}

} // namespace chimera
