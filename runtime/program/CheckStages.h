//===- CheckStages.h - Checks of a program's stages -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_CHECKSTAGES_H
#define CHIMERA_RUNTIME_PROGRAM_CHECKSTAGES_H

#include "runtime/program/Layers.h"

namespace chimera::program {

/// Checks the sizes of `stage`: the bytes of its weights, of the copy in them,
/// of its optimizer state and, except for the last stage, of its boundary must
/// be those of its layers. Returns an error text, or an empty text.
std::string checkBytes(const PackageT &model, Types types,
                       const OptimizerT &optimizer, uint32_t microBatchSize,
                       const Stage &stage);

/// Checks whether the stages of `program` agree with its model. Returns an
/// error text, or an empty text if they do. Refuses a model that checkPackage
/// refuses, types and sizes that checkTypesAndSizes refuses, an optimizer that
/// checkOptimizer refuses, and a micro-batch size of 0. Refuses stages that do
/// not have each layer once, in order, sizes that checkBytes refuses, and a
/// `tied` that differs from tiedParameters. Requires at least one stage, a
/// model and an optimizer.
std::string checkStages(const ProgramT &program);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_CHECKSTAGES_H
