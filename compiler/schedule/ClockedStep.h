//===- ClockedStep.h - A step in nanoseconds --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What was predicted counts in ticks of the description's unit, and what ran in
// nanoseconds. To be compared, and drawn on one axis, both are steps in
// nanoseconds that begin with their first action.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H
#define CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H

#include "compiler/schedule/Timeline.h"

namespace chimera::schedule {

/// More than a hundred days; a double holds each of fewer nanoseconds.
inline constexpr int64_t kMostNanoseconds = int64_t{1} << 53;

/// One step with a flush, in nanoseconds.
struct ClockedStep {
  Timing timing; ///< starts, makespan, busy and idle; nothing else
  /// Of each action, in the shape of Schedule::workers.
  std::vector<std::vector<int64_t>> durations;
  Tail tail; ///< without sums where nobody has measured them
  /// Empty where messages occupy nobody, or nobody has measured it: what a
  /// trace has of a receive does not tell its wait from its time.
  Occupations occupations;

  /// When the last worker is done.
  int64_t end() const;
  /// In which the worker runs actions and updates.
  int64_t busy(size_t worker) const;
  /// The rest of the time until the last worker is done.
  int64_t idle(size_t worker) const { return end() - busy(worker); }
  /// From when the worker is done with the action before, or from 0 on. Behind
  /// its last action, at the index behind it, the time until it is done.
  int64_t waitBefore(size_t worker, size_t index) const;

  /// Computes the other times from starts, durations and the tail's work.
  void complete();
};

/// What `timeline` predicts. None where it takes more than kMostNanoseconds.
/// Requires a unit that is a duration, and steps with a flush.
std::optional<ClockedStep> clocked(const Timeline &timeline);

/// A timeline in nanoseconds that otherwise is as `timeline`; refers to `step`.
Timeline timelineOf(const Timeline &timeline, const ClockedStep &step);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H
