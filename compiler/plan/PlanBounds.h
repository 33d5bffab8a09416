//===- PlanBounds.h - What no plan of a choice can beat ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Known from where a scheme places stages, before it orders anything: what is
// slower or larger by these need not be planned.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_PLANBOUNDS_H
#define CHIMERA_COMPILER_PLAN_PLANBOUNDS_H

#include "compiler/plan/Model.h"

namespace chimera::plan {

/// What no step is shorter than of `placed`, a placement of the choice's
/// scheme, however the table's layers are cut, ns: as if layers could be cut
/// anywhere.
double cutBound(const LayerTable &table, const schedule::Problem &placed);

/// What no step of `problem` is shorter than, whatever its order: what its
/// workers' actions and updates take (leastStep), and its messages
/// (busiestChannel); with a flush also, of each pipeline, one micro-batch's way
/// to and from a stage and all the pipeline's work there, since the pipeline's
/// first stage begins no step before it has ended the last. Recomputes are not
/// counted: an order may leave them out.
double stepBound(const schedule::Problem &problem);

/// What the worker that takes most takes at least, whatever the order and the
/// cut: the mean of weights, optimizer state and sums of gradients.
int64_t heldBound(const schedule::Problem &problem);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_PLANBOUNDS_H
