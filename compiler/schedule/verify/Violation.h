//===- Violation.h - A violation of a constraint by a schedule --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_VIOLATION_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_VIOLATION_H

#include <cstdint>
#include <string>
#include <vector>

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

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_VIOLATION_H
