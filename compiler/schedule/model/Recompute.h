//===- Recompute.h - Insertion and removal of recomputes --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Activation recomputation: a forward keeps only its input, and a recompute
// runs the same computation again before the backward.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_RECOMPUTE_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_RECOMPUTE_H

#include "compiler/schedule/model/Schedule.h"

namespace chimera::schedule {

/// A copy of `schedule` with a recompute directly before each backward (or
/// input gradient) of the stages that Problem::recompute selects. An early
/// recompute is left out if the action before it on the worker is the forward
/// of the same micro-batch on the same stage. The result has no slots. Requires
/// a schedule of `problem` without recomputes.
Schedule insertRecompute(const Problem &problem, const Schedule &schedule);

/// A copy of `schedule` without recomputes and without slots. It is a schedule
/// of the same problem without recomputation.
Schedule removeRecompute(const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_RECOMPUTE_H
