//===- Bounds.h - What no schedule can beat ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lower bounds of the makespan of any schedule of a problem: of its placement
// and share-out, whatever the order.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_BOUNDS_H
#define CHIMERA_COMPILER_SCHEDULE_BOUNDS_H

#include "compiler/schedule/Simulate.h"

namespace chimera::schedule {

struct Bound {
  const char *name;       ///< "LB1" to "LB6"
  const char *formula;    ///< T is the makespan
  const char *conditions; ///< where it holds
  const char *reason;     ///< why
  /// No makespan is below this; 0 where the conditions do not hold.
  int64_t time = 0;
  /// True if `simulate` meets the conditions, so that no Timing is below.
  bool simulated = true;
};

/// LB1 to LB6, in that order. Requires check(problem).empty().
std::vector<Bound> bounds(const Problem &problem);

/// The time of LB5 for a step: that of its messages, one after another and
/// without alpha, on the channel that carries most. `simulate` lets them
/// overlap, but steps one after another take no less.
int64_t busiestChannel(const Problem &problem);

/// The highest of `bounds` that `simulate` cannot beat, the first of several.
const Bound &best(const std::vector<Bound> &bounds);

/// How far the makespan is above the bound, as a share of the bound.
double gap(const Timing &timing, const Bound &bound);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_BOUNDS_H
