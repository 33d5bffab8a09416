//===- PlanDescription.h - Questions and plans as modules -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts a module that describes a model and a machine into a question for
// the planner, and a plan into the text of a module with a pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H
#define CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H

#include "compiler/planner/search/Evaluate.h"
#include "dialect/Chimera.h"

#include "mlir/IR/BuiltinOps.h"

namespace chimera {

/// The ops of the description for which a plan is made. Passed by value, as
/// MLIR ops are.
struct PlannerOps {
  ModelOp model;
  MachineOp machine;
  TrainingOp training;                 ///< null if none is given
  std::optional<DataType> weights;     ///< float32 if not given
  std::optional<DataType> activations; ///< as the weights if not given
};

/// Finds the model, the machine and the training in `module` by name. An empty
/// name means the only op of its kind. If `training` is empty and the module
/// has no training, `training` of the result is null. In all other cases, fails
/// if there is no such op, or more than one. The diagnostic says what is
/// missing and how to write it.
mlir::FailureOr<PlannerOps> findPlannerOps(mlir::ModuleOp module,
                                           llvm::StringRef model,
                                           llvm::StringRef machine,
                                           llvm::StringRef training);

/// The model of `ops` as the planner reads it. Fails, with a diagnostic, if the
/// model is not bare and cannot be trained.
mlir::FailureOr<cost::Model> costModelOf(PlannerOps ops);

/// The text of a module for chimera-compile. The module has `ops` and a
/// pipeline @plan for `proposal`. File names in the text are absolute, so the
/// text can be written to any folder. Requires that the proposal is for `ops`
/// and that `bucketBytes` is the bucket size of its question.
std::string describePlan(PlannerOps ops, const plan::Proposal &proposal,
                         int64_t bucketBytes);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H
