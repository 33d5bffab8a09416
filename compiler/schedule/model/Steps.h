//===- Steps.h - Steps that overlap -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that overlap. If no flush ends a step, the next step begins before the
// step is over. A worker keeps several versions of its weights, because a
// backward reads the same version as its forward. Version v is the weights
// after v updates.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_STEPS_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_STEPS_H

#include "compiler/schedule/model/Schedule.h"

namespace chimera::schedule {

/// The version that the forward and backward of `microBatch` m read on `stage`
/// s:
///
/// - with updates after each micro-batch, max(0, m - (D-1-s)), where D is the
///   number of stages;
/// - with one update a step, max(0, k - 1) for a micro-batch of step k;
/// - with a flush, 0: versions are counted from the start of the step.
int64_t weightVersion(const Problem &problem, int32_t stage,
                      int64_t microBatch);

/// The number of versions of a stage's weights that its worker keeps. For stage
/// s of D stages, it is D - s with updates after each micro-batch, 2 with one
/// update a step, and 1 with a flush.
int32_t weightVersions(const Problem &problem, int32_t stage);

/// The order of `steps` steps, made from the order of two: the prologue, the
/// body once for each step except the last, and the epilogue. The result is a
/// schedule of `problem` with that number of steps. It has bodies only if
/// `steps` is 2. Requires a valid schedule of two steps with bodies, and at
/// least 2 steps.
Schedule unrollSteps(const Problem &problem, const Schedule &schedule,
                     int32_t steps);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_STEPS_H
