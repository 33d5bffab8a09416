//===- DescriptionReader.h - Reading a description --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBE_DESCRIPTIONREADER_H
#define CHIMERA_PASSES_DESCRIBE_DESCRIPTIONREADER_H

#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/text/TimeUnit.h"
#include "dialect/Chimera.h"
#include "runtime/program/Layers.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chimera {

/// The model that `op` describes. If the model is exported, it is the package
/// that computes in `type` or, if there is no `type`, in any one. Requires that
/// `op` is not a bare model. Fails with a diagnostic if the model cannot be
/// trained.
mlir::FailureOr<std::unique_ptr<program::PackageT>>
modelOf(ModelOp op, std::optional<program::DataType> type);

/// The path of a file that `op` names. A relative path is relative to the
/// folder of the description.
std::string pathFrom(mlir::Operation *op, llvm::StringRef path);

/// The role of the file at `path` if this compilation reads the file, in words
/// for an error message: the module's own file, or a profile or a package that
/// the module names. Empty if the compilation does not read the file.
llvm::StringRef inputAt(mlir::ModuleOp module, llvm::StringRef path);

/// The model op that the pipeline names, or null if the pipeline names none.
/// Fails with a diagnostic if there is no op of that name.
mlir::FailureOr<ModelOp> modelOpOf(PipelineOp pipeline);

/// The model that the pipeline trains. Null if the pipeline names no model or a
/// bare one. Fails with a diagnostic if the model does not exist or cannot be
/// trained.
mlir::FailureOr<std::unique_ptr<program::PackageT>>
modelOf(PipelineOp pipeline);

/// Fails with a diagnostic if the stage does not have layers of the model, or
/// if its bytes of weights, optimizer state and boundary differ from those of
/// these layers.
mlir::LogicalResult checkModelStage(StageOp stage,
                                    const program::PackageT &model);

/// The properties of the chimera.training op that the pipeline names. If it
/// names none, the default properties.
TrainingOp::Properties trainingOf(PipelineOp pipeline);

/// The data types of the pipeline's values.
program::Types typesOf(PipelineOp pipeline);

/// The optimizer of the pipeline's training with its numbers, as a program has
/// it.
program::OptimizerT optimizerOf(PipelineOp pipeline);

/// The unit of the stages' costs. This is the time_unit of the pipeline. If the
/// pipeline states none, it is nanoseconds if its times have units, otherwise
/// the unit "none". Fails with a diagnostic if the name is unknown, or if the
/// unit is a duration and a time has a fraction.
mlir::FailureOr<const schedule::TimeUnit *> timeUnitOf(PipelineOp pipeline);

/// The number of ticks in a time unit of the pipeline: the least number with
/// which all times of the pipeline are whole numbers of ticks.
int64_t ticksPerUnit(PipelineOp pipeline);

/// The number of ticks in `time` × 10^-`places` units, if a unit has `perUnit`
/// ticks. At most INT64_MAX.
int64_t ticksOf(int64_t time, uint32_t places, int64_t perUnit);

/// The memory cap of each worker of the pipeline, in bytes. Empty if the
/// pipeline has no cap.
std::vector<int64_t> capsOf(PipelineOp pipeline);

/// The most bytes that a worker may use: the pipeline's own cap, or the usable
/// memory of its machine. None if neither states it.
std::optional<uint64_t> capOf(PipelineOp pipeline);

/// The machine that the pipeline names, or null.
MachineOp machineOf(PipelineOp pipeline);

/// The value of a schedule's option as text, which the schedule library parses.
/// Nothing if the value is neither an integer nor a string.
std::optional<std::string> optionText(mlir::Attribute value);

/// A scheme of the registry and its options.
struct SchemeChoice {
  const schedule::Scheme *scheme = nullptr;
  schedule::Options options;
};

/// The request for a plan, for a pipeline whose stages are not known yet. All
/// stages have unit cost.
schedule::Request requestOf(PipelineOp pipeline, schedule::Options options);

/// The cost of a stage if the description states no costs. A forward of one
/// micro-batch takes one unit. A backward takes one unit too, or one unit for
/// each of its `parts`.
CostAttr assumedCost(mlir::MLIRContext *context, int64_t parts);

/// The bytes of a stage if the description states no sizes: eight 64-bit words
/// for each value, and twice as many for the optimizer state.
BytesAttr assumedBytes(mlir::MLIRContext *context);

/// True if the pipeline has stages, and all have the assumed cost and bytes.
bool hasAssumedStages(PipelineOp pipeline);

/// The name of the pipeline's schedule in reports and programs. If the
/// description gives an order instead of a name, "given".
llvm::StringRef scheduleNameOf(PipelineOp pipeline);

/// The scheme that the pipeline names. Fails with a diagnostic that lists the
/// possible values if the pipeline names no scheme, or if the name, an option
/// or the value of an option is unknown. Also fails if the scheme does not
/// support the pipeline's numbers of stages and micro-batches.
mlir::FailureOr<SchemeChoice> schemeOf(PipelineOp pipeline);

/// The kinds of recomputation that the description states: empty, or an entry
/// for each stage.
std::vector<schedule::Recompute> recomputeOf(PipelineOp pipeline);

/// When the pipeline's order updates weights: after a flush, after each
/// micro-batch, or once a step.
schedule::Updates updatesOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBE_DESCRIPTIONREADER_H
