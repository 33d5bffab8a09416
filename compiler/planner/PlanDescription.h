//===- PlanDescription.h - Questions and answers as modules -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module that describes a model and a machine becomes a question to the
// planner, and a plan becomes the text of a module with a described pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H
#define CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H

#include "compiler/plan/Evaluate.h"
#include "dialect/Chimera.h"

#include "mlir/IR/BuiltinOps.h"

namespace chimera {

/// What a plan is for; passed by value, as ops are.
struct PlanSubject {
  ModelOp model;
  MachineOp machine;
  TrainingOp training;                 ///< null where none is given
  std::optional<DataType> weights;     ///< float32 unless given
  std::optional<DataType> activations; ///< as the weights unless given
};

/// The model, the machine and the training of these names in `module`; of an
/// empty name the only one there is. Fails, with a diagnostic that says what is
/// missing and how it is described, where there is none or several.
mlir::FailureOr<PlanSubject> subjectOf(mlir::ModuleOp module,
                                       llvm::StringRef model,
                                       llvm::StringRef machine,
                                       llvm::StringRef training);

/// The model as the planner takes it. Fails, with a diagnostic, where it cannot
/// be trained.
mlir::FailureOr<plan::Model> planModelOf(PlanSubject subject);

/// The text of a module with the subject's ops and the pipeline @plan of
/// `proposal`, for chimera-compile. Files in it have whole paths, so the text
/// can be written to any folder. Requires that the proposal is one for the
/// subject, with `bucketBytes` as its question has them.
std::string describePlan(PlanSubject subject, const plan::Proposal &proposal,
                         int64_t bucketBytes);

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_PLANDESCRIPTION_H
