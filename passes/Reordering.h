//===- Reordering.h - A global order of actions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REORDERING_H
#define CHIMERA_PASSES_REORDERING_H

#include "compiler/schedule/Simulate.h"
#include "dialect/Chimera.h"

namespace chimera {

/// The turns of each section in their order: all of them in that of a step, or
/// what is before the bodies, in them and behind them.
std::vector<std::vector<schedule::Turn>>
splitOrder(std::vector<schedule::Turn> order,
           const schedule::Schedule &schedule);

/// True for what stands among the actions of a section: actions, what they
/// read, and the updates behind each backward of a schedule that has those.
bool standsAmongActions(mlir::Operation &op, schedule::Updates updates);

/// What reduces `sum`, then what updates weights with it.
llvm::SmallVector<mlir::Operation *, 2> updateOf(mlir::Value sum);

} // namespace chimera

#endif // CHIMERA_PASSES_REORDERING_H
