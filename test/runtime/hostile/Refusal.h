//===- Refusal.h - Programs refused for a deadlock --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_HOSTILE_REFUSAL_H
#define CHIMERA_TEST_RUNTIME_HOSTILE_REFUSAL_H

#include "test/runtime/hostile/Run.h"

namespace chimera::runtime::hostile {

/// Describes runs of a program that verifyProgram refuses for a deadlock.
struct Refusal {
  /// Empty if the run on hosts that wait (as the proof assumes) stops in a
  /// deadlock, and the simulation says where. Otherwise what this run or the
  /// other one does instead.
  std::string wrong;
  /// The run on hosts that do not wait (RunOptions). On such hosts, a posted
  /// operation may start before an earlier wait has ended. So this run may end,
  /// although the program is refused.
  Outcome withoutWaiting;
};

/// Runs a refused program on hosts that wait and on hosts that do not. Requires
/// that all accesses of the program are within its memory.
Refusal runRefused(const program::ProgramT &program, uint64_t seed,
                   uint64_t steps);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_REFUSAL_H
