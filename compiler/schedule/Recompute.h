//===- Recompute.h - Forwards that run again --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Activation recomputation: a forward keeps only what it read and runs again,
// as a recompute, before its backward.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_RECOMPUTE_H
#define CHIMERA_COMPILER_SCHEDULE_RECOMPUTE_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// `schedule` with a recompute straight before each backward (each input
/// gradient, where it is split) of the stages that Problem::recompute names;
/// slots are dropped. An early one is left out where the action before it on
/// that worker is the forward of the same micro-batch on the same stage.
/// Requires a schedule of `problem` without recomputes.
Schedule insertRecompute(const Problem &problem, const Schedule &schedule);

/// `schedule` without its recomputes: one of the same problem without
/// recomputation. Slots are dropped.
Schedule removeRecompute(const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_RECOMPUTE_H
