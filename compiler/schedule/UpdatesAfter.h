//===- UpdatesAfter.h - Updates between actions -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If steps overlap (Steps.h), workers update weights between their actions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_UPDATESAFTER_H
#define CHIMERA_COMPILER_SCHEDULE_UPDATESAFTER_H

#include "compiler/schedule/Schedule.h"

namespace chimera::schedule {

/// The work of a worker after its last action that adds to a gradient, if steps
/// overlap: the worker waits for the gradient's all-reduce over the
/// data-parallel copies, then updates the weights.
struct UpdateAfter {
  int64_t wait = 0, update = 0;

  int64_t time() const { return wait + update; }
};

/// The wait and update after each action, in the shape of Schedule::workers.
/// Empty if all-reduces and updates take no time, or if a flush ends each step.
std::vector<std::vector<UpdateAfter>> updatesAfter(const Problem &problem,
                                                   const Schedule &schedule);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_UPDATESAFTER_H
