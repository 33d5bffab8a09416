//===- Cut.h - A model cut into stages --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_CUT_H
#define CHIMERA_COMPILER_PLAN_CUT_H

#include "compiler/plan/Model.h"

namespace chimera::plan {

/// Layers [first, end) of a model, and what they take for one micro-batch.
struct CutStage {
  int32_t first, end;
  schedule::StageCost cost;
  schedule::StageBytes bytes;
};

/// Empty, or what is wrong with so many stages of a model of so many layers.
std::string checkCut(int32_t layers, int64_t stages);

/// The table's layers in `stages` contiguous stages, of which the longest takes
/// as little time for a micro-batch as possible: a forward, a backward and,
/// where `recompute` (empty, or one for each stage) says so, a forward again.
/// No time is below `parts`, the parts that a backward is cut into. Requires
/// that checkCut finds nothing wrong.
std::vector<CutStage>
cutModel(const LayerTable &table, int32_t stages,
         const std::vector<schedule::Recompute> &recompute, int64_t parts = 1);

/// Bytes of the weights that first and last stage both have.
int64_t tiedBytes(const LayerTable &table, const std::vector<CutStage> &stages);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_CUT_H
