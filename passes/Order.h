//===- Order.h - A global order of actions ----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ORDER_H
#define CHIMERA_PASSES_ORDER_H

#include "compiler/schedule/Simulate.h"

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

} // namespace chimera

#endif // CHIMERA_PASSES_ORDER_H
