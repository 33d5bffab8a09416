//===- Bounds.h - Lower bounds of the makespan ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lower bounds of the makespan of any schedule of a problem. The bounds depend
// on the placement and on the micro-batches of each pipeline, but not on an
// order.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_BOUNDS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_BOUNDS_H

#include "compiler/schedule/simulate/Timing.h"

namespace chimera::schedule {

/// A lower bound of the makespan.
struct Bound {
  const char *name;       ///< "LB1" to "LB6"
  const char *formula;    ///< T is the makespan
  const char *conditions; ///< when the bound holds
  const char *reason;     ///< why the bound holds
  /// No makespan is below this; 0 if the conditions do not hold.
  int64_t time = 0;
  /// True if the conditions hold for `simulate`. Then no simulated makespan is
  /// below the bound.
  bool holdsForSimulator = true;
};

/// LB1 to LB6, in that order. Requires check(problem).empty().
std::vector<Bound> bounds(const Problem &problem);

/// The bound LB5 for one step. A channel has all messages from one worker to
/// another. The bound is the time of the messages of the busiest channel, one
/// after another, without alpha. In `simulate` messages overlap, so a single
/// step may be shorter than this bound. The mean time of many steps cannot be
/// shorter, because a link carries no more than its bandwidth.
int64_t busiestChannel(const Problem &problem);

/// The largest bound with `holdsForSimulator`; the first of these if several
/// are equal.
const Bound &bestBound(const std::vector<Bound> &bounds);

/// (makespan - bound) / bound.
double gapTo(const Timing &timing, const Bound &bound);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_BOUNDS_H
