//===- Verify.h - The constraints of a valid schedule -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_VERIFY_VERIFY_H
#define CHIMERA_COMPILER_SCHEDULE_VERIFY_VERIFY_H

#include "compiler/schedule/model/Schedule.h"
#include "compiler/schedule/verify/Violation.h"

namespace chimera::schedule {

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

#endif // CHIMERA_COMPILER_SCHEDULE_VERIFY_VERIFY_H
