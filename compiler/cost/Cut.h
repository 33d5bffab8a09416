//===- Cut.h - A model cut into stages --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_CUT_H
#define CHIMERA_COMPILER_COST_CUT_H

#include "compiler/cost/Model.h"

namespace chimera::cost {

/// A stage: layers [first, end) of a model, and their costs for one
/// micro-batch.
struct CutStage {
  int32_t first, end;
  schedule::StageCost cost;
  schedule::StageBytes bytes;
};

/// Returns an error if a model of `layers` layers cannot be cut into `stages`
/// stages, else an empty text.
std::string checkCut(int32_t layers, int64_t stages);

/// Cuts the table's layers into `stages` contiguous stages so that the longest
/// stage takes the least time. The time of a stage is a forward and a backward
/// of one micro-batch, plus a recompute if `recompute` selects the stage.
/// `recompute` has one entry for each stage, or is empty if no stage is
/// recomputed. `parts` is the number of parts of a backward. The cost of each
/// action is raised to at least `parts`, so that every part has a positive
/// cost. Requires that checkCut returns no error.
std::vector<CutStage>
cutIntoStages(const LayerTable &table, int32_t stages,
              const std::vector<schedule::Recompute> &recompute,
              int64_t parts = 1);

/// Bytes of the weights that the first and the last stage share. 0 if there is
/// only one stage.
int64_t tiedBytes(const LayerTable &table, const std::vector<CutStage> &stages);

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_CUT_H
