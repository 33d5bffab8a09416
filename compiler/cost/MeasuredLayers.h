//===- MeasuredLayers.h - Costs of layers from measurements -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_MEASUREDLAYERS_H
#define CHIMERA_COMPILER_COST_MEASUREDLAYERS_H

#include "compiler/cost/LayerTable.h"
#include "compiler/cost/Profile.h"

namespace chimera::cost {

/// Replaces the times of `table`, which are counts of operations, by measured
/// times in nanoseconds.
///
/// - The time of a stage is divided among its layers in proportion to their
///   operations.
/// - If several profiles have the same micro-batch size, each profile adds the
///   kinds of times that the earlier ones lack. The added times are multiplied
///   by the forward time of the first profile divided by the forward time of
///   the added profile.
/// - If no profile has this micro-batch size, times lie on a line through the
///   two nearest sizes. If there is only one size, the times of actions are
///   proportional to the size, and the times of updates do not depend on it.
///
/// Requires at least one profile, and that all are of this model
/// (Model::check).
void setMeasured(LayerTable &table, int64_t microBatchSize,
                 const std::vector<Profile> &profiles);

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_MEASUREDLAYERS_H
