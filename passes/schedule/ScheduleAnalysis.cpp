//===- ScheduleAnalysis.cpp - A pipeline's order and its times ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleAnalysis.h"

#include "compiler/schedule/simulate/Simulate.h"

using namespace mlir;

namespace chimera {

const ScheduledProblem *ScheduleAnalysis::get() {
  if (!of)
    of = scheduledProblemOf(pipeline);
  return succeeded(*of) ? &**of : nullptr;
}

const std::vector<schedule::Violation> &ScheduleAnalysis::violations() {
  if (!found)
    found = schedule::verify((*of)->problem, (*of)->schedule);
  return *found;
}

const ScheduledProblem *ScheduleAnalysis::verified() {
  const ScheduledProblem *result = get();
  return result && succeeded(report(pipeline, kInvalid, violations()))
             ? result
             : nullptr;
}

const schedule::Timing &ScheduleAnalysis::timing() {
  if (!simulated)
    simulated = schedule::simulate((*of)->problem, (*of)->schedule);
  return *simulated;
}

} // namespace chimera
