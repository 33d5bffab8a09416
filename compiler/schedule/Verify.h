//===- Verify.h - The constraints of a valid schedule -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// A violation of a constraint by a schedule, and its place.
struct Violation {
  enum class Constraint {
    UnknownAction, ///< the problem has no such action
    Missing,       ///< a required action is not in the schedule
    Duplicate,     ///< an action is in the schedule twice
    Placement,     ///< an action is not on the worker of its stage
    Order,         ///< an action is before a dependency on the same worker
    Deadlock,      ///< workers wait for each other's actions in a cycle
    Slots,         ///< slots contradict the order or a dependency
    Memory,        ///< a worker's peak is above its cap: see Memory.h
    Period,        ///< steps overlap, but the bodies cannot repeat
    Versions, ///< A forward reads weights that do not exist yet, updates are
              ///< out of order, or too many versions of weights are live: see
              ///< Steps.h.
  };
  Constraint constraint;
  std::string message;
  /// The worker, and the index of the wrong action in the worker's order. Each
  /// is negative if the violation is not about a single worker or action.
  int32_t worker = -1, index = -1;
  /// A text that explains the violation. `worker` and `index` are the place of
  /// the action that the text is about, or negative if it is about none.
  struct Note {
    std::string message;
    int32_t worker = -1, index = -1;
  };
  std::vector<Note> notes = {};
};

/// "unknown-action", "missing", …
const char *nameOf(Violation::Constraint constraint);

/// All violations of `schedule` as a schedule of `problem`; empty if it is
/// valid. Each constraint is checked independently of the others, with two
/// exceptions. If a worker has one action twice and lacks another one, only the
/// duplicate is reported, and its message names the missing action. If a worker
/// of a cycle is stuck at an action that violates the order constraint, only
/// that violation is reported, and not the cycle. For the deadlock constraint,
/// missing actions count as done, unknown and repeated actions are skipped, and
/// dependencies that violate the order constraint are ignored. All other cycles
/// of workers that wait for each other are reported, the shortest first. If no
/// cycle was left out, a note on the last report says how many more workers
/// wait for these workers. Linear in the number of actions. Requires
/// check(problem).empty().
std::vector<Violation> verify(const Problem &problem, const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_H
