//===- MeasuredLayers.h - Costs of layers from measurements -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H
#define CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H

#include "compiler/plan/Model.h"

namespace chimera::plan {

/// Replaces the times of `table`, which are operations, by measured times.
///
/// - The time of a stage is divided among its layers in proportion to their
///   operations.
/// - If several profiles have the same micro-batch size, each adds the kinds of
///   times that the earlier ones lack. They are scaled by the ratio of the
///   forwards.
/// - If no profile has this micro-batch size, times lie on a line through the
///   two nearest sizes, or are proportional if there is only one size.
///
/// Requires at least one profile, and that all are of this model
/// (Model::check).
void setMeasured(LayerTable &table, int64_t microBatchSize,
                 const std::vector<Profile> &profiles);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_MEASUREDLAYERS_H
