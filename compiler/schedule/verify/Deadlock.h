//===- Deadlock.h - Workers that wait for each other ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule deadlocks if its workers, run in order and without times, stop
// before their ends. The actions whose dependencies have ended can run in any
// order, so all runs stop at the same actions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_DEADLOCK_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_DEADLOCK_H

#include "compiler/schedule/verify/PlacedActions.h"

namespace chimera::schedule {

/// The state of all workers when none can continue.
struct Stuck {
  /// Of each worker, the first action that it cannot run.
  std::vector<size_t> next;
  /// Of each worker, the dependency that it waits for, or
  /// PlacedActions::kNoAction.
  std::vector<int64_t> waitsFor;
  bool any = false; ///< whether a worker waits
  /// Whether a dependency was ignored because the order violates it.
  bool ignoredDependency = false;
};

/// Runs the order without times until no worker can continue. Actions that are
/// not in the schedule count as done. Takes linear time.
Stuck runWithoutTimes(const PlacedActions &actions);

/// Reports each worker of each cycle of workers that wait for each other, the
/// shortest cycle first, and says how many other workers wait for them. Leaves
/// out a cycle if one of its workers is stuck at an action that violates the
/// order constraint: such a deadlock may be only a consequence of that
/// violation. Requires `stuck.any`.
void reportDeadlock(PlacedActions &actions, const Stuck &stuck);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_DEADLOCK_H
