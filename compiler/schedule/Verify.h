//===- Verify.h - What a valid schedule satisfies ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

struct Violation {
  enum class Constraint {
    UnknownAction, ///< the problem has no such action
    Missing,       ///< an action that the problem needs stands on no worker
    Duplicate,     ///< an action stands twice
    Placement,     ///< an action stands on another worker than its stage
    Order,         ///< a worker runs an action before what it needs there
    Deadlock,      ///< workers wait for each other's actions in a cycle
    Slots,         ///< slots do not fit the order or a dependency
    Memory,        ///< a worker holds more than its cap: see Memory.h
    Period,        ///< bodies do not repeat where steps overlap
    Versions,      ///< a forward reads weights that are not there yet, updates
                   ///< are out of order, or too many versions live: see Steps.h
  };
  Constraint constraint;
  std::string message;
  /// The worker, and the action that is wrong by its place in the worker's
  /// order; negative where it is none.
  int32_t worker = -1, index = -1;
};

/// "unknown-action", "missing", …
const char *nameOf(Violation::Constraint constraint);

/// Everything that is wrong with `schedule` as a schedule of `problem`, empty
/// if nothing is. Each constraint is looked at on its own: a deadlock is one
/// that would remain if missing actions were done, unknown and repeated ones
/// gone, and each pair that the order violates left out. Of a deadlock every
/// cycle of waits is reported, the shortest first, and the other workers that
/// wait are counted. Linear in the number of actions. Requires
/// check(problem).empty().
std::vector<Violation> verify(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_H
