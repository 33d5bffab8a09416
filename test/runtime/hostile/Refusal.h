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

/// What becomes of a program that verifyProgram refuses for a deadlock.
struct Refusal {
  /// Empty if it stops on hosts that wait, as the proof takes them to do, and
  /// the simulation says at what; else what it did instead.
  std::string wrong;
  /// On hosts that do not wait. Where that run ends, the refusal is needless
  /// for them: what they post may begin before a wait ahead of it has ended.
  Outcome withoutWaiting;
};

/// Requires that all accesses of the program stay within its memory.
Refusal runRefused(const program::ProgramT &program, uint64_t seed,
                   uint64_t steps);

} // namespace chimera::runtime::hostile

#endif // CHIMERA_TEST_RUNTIME_HOSTILE_REFUSAL_H
