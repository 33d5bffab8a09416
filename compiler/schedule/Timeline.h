//===- Timeline.h - A schedule as a grid of text ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINE_H

#include "compiler/schedule/Simulate.h"

namespace chimera::schedule {

/// The grid in the Chimera paper's form: a row for each worker, a column for
/// each unit of time, headed "slot" or "t". A cell names kind and micro-batch
/// (F forward, B backward, I input gradient, W weight gradient), in upper case
/// for down pipelines and lower case for up pipelines; `=` continues an action
/// and `.` is idle. Requires a complete timing; the width grows with the
/// makespan.
std::string renderGrid(const Problem &problem, const Schedule &schedule,
                       const Timing &timing, bool slots);

/// Three lines: makespan, bubble and peak activations per worker, with the
/// times they hold for.
std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
