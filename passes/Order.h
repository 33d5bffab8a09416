//===- Order.h - A global order of actions ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ORDER_H
#define CHIMERA_PASSES_ORDER_H

#include "compiler/schedule/Simulate.h"
#include "dialect/Chimera.h"

namespace chimera {

/// An action's place in the schedule and when it starts.
struct Turn {
  int64_t start;
  int32_t worker;
  int32_t index;
};

/// All actions by start, then worker. An action starts after what it depends
/// on, since costs are positive, so this order respects every dependency.
std::vector<Turn> globalOrder(const schedule::Timing &timing);

/// The turns of each section in their order: all of them in that of a step, or
/// what is before the bodies, in them and behind them.
std::vector<std::vector<Turn>> splitOrder(std::vector<Turn> order,
                                          const schedule::Schedule &schedule);

/// True for what stands among the actions of a section: actions, what they
/// read, and the updates behind each backward of a schedule that has those.
bool standsAmongActions(mlir::Operation &op, schedule::Updates updates);

/// What reduces `sum`, then what updates weights with it.
llvm::SmallVector<mlir::Operation *, 2> updateOf(mlir::Value sum);

} // namespace chimera

#endif // CHIMERA_PASSES_ORDER_H
