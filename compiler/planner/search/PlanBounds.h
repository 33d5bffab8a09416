//===- PlanBounds.h - Lower bounds of a choice's plans ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lower bounds of step time and memory. They need the placement of the stages
// (which worker has which stage), but no order. If a choice is too slow or too
// large by its bounds, the planner does not make its plan.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_PLANBOUNDS_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_PLANBOUNDS_H

#include "compiler/cost/Model.h"

namespace chimera::plan {

/// A lower bound of the step time in ns, for every cut of the table's layers
/// into stages, even if a stage could end within a layer. `placed` has the
/// placement that the choice's scheme makes. The stage costs of `placed` are
/// not used.
double stepBoundOfAnyCut(const cost::LayerTable &table,
                         const schedule::Problem &placed);

/// A lower bound of the step time of `problem`, for every order. It is the
/// maximum of
/// - the time that the busiest workers need for their actions and, if a flush
///   ends the step, for their updates (minStepTime),
/// - the time of the messages of the busiest channel (busiestChannel),
/// - if a flush ends the step, for each pipeline and stage the sum of
///   - the time in which one micro-batch goes from the first stage to that
///     stage and back to the first stage (0 if backwards have parts),
///   - the time of all forwards and backwards of the pipeline on that stage,
///     without weight gradients,
///   - the update of the first stage. The first stage begins a step only after
///     its update of the previous step.
///
/// Recomputes are not counted, since an order may leave them out.
double stepBound(const schedule::Problem &problem);

/// A lower bound of the bytes of the largest worker, for every order and cut:
/// the mean over the workers of weights, optimizer state and sums of gradients.
int64_t memoryBound(const schedule::Problem &problem);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_PLANBOUNDS_H
