//===- Reordering.h - A global order of actions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SCHEDULE_REORDERING_H
#define CHIMERA_PASSES_SCHEDULE_REORDERING_H

#include "compiler/schedule/simulate/Timing.h"
#include "dialect/Chimera.h"

namespace chimera {

/// The global order of actions, split by section. With a flush, there is one
/// list. If steps overlap, there are three lists: the actions before, in and
/// after the loop body of their worker.
std::vector<std::vector<schedule::ActionRef>>
splitBySection(std::vector<schedule::ActionRef> order,
               const schedule::Schedule &schedule);

/// True for ops that may be placed between the actions of a section: actions,
/// loads and copies. If each micro-batch has an update, these ops also include
/// the updates and the all-reduces of gradients.
bool mayBeBetweenActions(mlir::Operation &op, schedule::Updates updates);

/// The all-reduce of `sum` if there is one, and the optimizer step that uses
/// its result. Without an all-reduce, the optimizer step that uses `sum`.
llvm::SmallVector<mlir::Operation *, 2> reductionAndUpdateOf(mlir::Value sum);

} // namespace chimera

#endif // CHIMERA_PASSES_SCHEDULE_REORDERING_H
