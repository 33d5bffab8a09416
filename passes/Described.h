//===- Described.h - What a description says --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBED_H
#define CHIMERA_PASSES_DESCRIBED_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/TimeUnit.h"
#include "dialect/Chimera.h"
#include "runtime/program/Layers.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace chimera {

/// The model that `op` describes. Fails, with a diagnostic, where it cannot be
/// trained.
mlir::FailureOr<std::unique_ptr<program::ModelT>> modelOf(ModelOp op);

/// The path of a file that `op` names: a relative one begins at the folder of
/// the description.
std::string pathFrom(mlir::Operation *op, llvm::StringRef path);

/// What the file at `path` is to who compiles the module, as an error calls it:
/// the module's own file, a profile or a package that it names. Empty where it
/// is none of them.
llvm::StringRef inputAt(mlir::ModuleOp module, llvm::StringRef path);

/// The op of the model that the pipeline names, null if it names none. Fails,
/// with a diagnostic, where there is no such model.
mlir::FailureOr<ModelOp> modelOpOf(PipelineOp pipeline);

/// The model that the pipeline trains, null if it names none or a bare one.
/// Fails, with a diagnostic, where there is no such model or it cannot be
/// trained.
mlir::FailureOr<std::unique_ptr<program::ModelT>> modelOf(PipelineOp pipeline);

/// Whether a stage of the model has layers of it, and their bytes of weights,
/// optimizer state and boundary. Fails, with a diagnostic, where it has not.
mlir::LogicalResult checkModelStage(StageOp stage,
                                    const program::ModelT &model);

/// What the chimera.training says that the pipeline names, or what holds
/// without one.
TrainingOp::Properties trainingOf(PipelineOp pipeline);

/// The types of the pipeline's values.
program::Types typesOf(PipelineOp pipeline);

/// The name of its optimizer.
llvm::StringRef optimizerOf(PipelineOp pipeline);

/// What one unit of the stages' costs is: what the pipeline says, or none.
/// Fails, with a diagnostic that lists what is possible, where there is no such
/// unit.
mlir::FailureOr<const schedule::TimeUnit *> timeUnitOf(PipelineOp pipeline);

/// The caps of the pipeline's workers, empty where it has none.
std::vector<int64_t> capsOf(PipelineOp pipeline);

/// The most bytes that a worker may take: the pipeline's own, or what its
/// machine leaves; none where neither says it.
std::optional<uint64_t> capOf(PipelineOp pipeline);

/// The machine that the pipeline names; null where it names none.
MachineOp machineOf(PipelineOp pipeline);

/// The value of a schedule's option as the schedule library reads it; none
/// where it is neither an integer nor a string.
std::optional<std::string> optionText(mlir::Attribute value);

/// A scheme of the registry and the options to use it with.
struct SchemeChoice {
  const schedule::Scheme *scheme = nullptr;
  schedule::Options options;
};

/// What the pipeline asks of its scheme before its stages are known: all of
/// unit cost.
schedule::Request requestOf(PipelineOp pipeline, schedule::Options options);

/// The word for a pipeline's order in reports and programs: the schedule that
/// it names, or that the order is given.
llvm::StringRef scheduleNameOf(PipelineOp pipeline);

/// The scheme that the pipeline names. Fails, with a diagnostic that says what
/// is possible, where it names none, where there is none of that name, where it
/// does not know an option or its value, and where it cannot do this number of
/// stages and micro-batches.
mlir::FailureOr<SchemeChoice> schemeOf(PipelineOp pipeline);

/// What the description asks to recompute: empty, or a word for each stage.
std::vector<schedule::Recompute> recomputeOf(PipelineOp pipeline);

/// When weights change in the pipeline's order.
schedule::Updates updatesOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBED_H
