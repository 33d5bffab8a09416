//===- ClockedStep.h - A step in nanoseconds --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What was predicted counts in ticks of the description's unit, and what ran in
// nanoseconds. To be compared, and drawn on one axis, both are steps in
// nanoseconds.
//
// Where a flush ends a step, time 0 is when its first action begins, and the
// step lasts until the last worker is done. Where steps overlap, each worker
// has a step of its own, its body (SteadyStep.h), from when it was done with
// the body before until it is done with this one; time 0 is when the first of
// them begins.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H
#define CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// More than a hundred days; a double holds each of fewer nanoseconds.
inline constexpr int64_t kMostNanoseconds = int64_t{1} << 53;

/// One step in nanoseconds.
struct ClockedStep {
  Timing timing; ///< starts, ends, makespan, busy and idle; nothing else
  Tail tail;     ///< without all-reduces where nobody has measured them
  /// Empty where messages occupy nobody, or nobody has measured it: what a
  /// trace has of a receive does not tell its wait from its time.
  Occupations occupations;
  /// Where steps overlap, when each worker's step begins; else empty.
  std::vector<int64_t> begins;

  bool overlaps() const { return !begins.empty(); }
  /// When the last worker is done.
  int64_t end() const;
  /// When the step of the worker begins.
  int64_t begin(size_t worker) const { return overlaps() ? begins[worker] : 0; }
  /// When the worker has to be done: with the last one, or with its own step.
  int64_t end(size_t worker) const {
    return overlaps() ? tail.ends[worker] : end();
  }
  /// The time of the step; where steps overlap, of the worker that takes
  /// longest.
  int64_t length() const;
  /// In which the worker runs actions and updates.
  int64_t busy(size_t worker) const;
  /// The rest of the worker's step.
  int64_t idle(size_t worker) const {
    return end(worker) - begin(worker) - busy(worker);
  }
  /// From when the worker is done with the action before, or its step begins.
  /// Behind its last action, at the index behind it, the time until it is done.
  /// Updates between two actions are part of it.
  int64_t waitBefore(size_t worker, size_t index) const;

  /// Computes the other times from starts, ends and the tail's work.
  void complete();
};

/// What `timeline` predicts, which is of a step with a flush or, with its
/// `begins`, of a SteadyStep. None where it takes more than kMostNanoseconds.
/// Requires a unit that is a duration.
std::optional<ClockedStep> clocked(const Timeline &timeline,
                                   std::span<const int64_t> begins = {});

/// A timeline in nanoseconds that otherwise is as `timeline`; refers to `step`.
Timeline timelineOf(const Timeline &timeline, const ClockedStep &step);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_CLOCKEDSTEP_H
