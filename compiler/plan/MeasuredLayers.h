//===- MeasuredLayers.h - What layers take, as was measured -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H
#define CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H

#include "compiler/plan/Model.h"

namespace chimera::plan {

/// Sets the times of `table`, which has operations, to what was measured. A
/// stage's time is shared by its layers as their operations are. Of profiles of
/// one size each adds what those before it have not, in proportion to its
/// forwards. A micro-batch of a size that none has takes what follows on a line
/// from the two sizes that are nearest, or in proportion to the only one.
/// Requires one profile at least, and that they are of this model
/// (Model::check).
void setMeasured(LayerTable &table, int64_t microBatchSize,
                 const std::vector<Profile> &profiles);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H
