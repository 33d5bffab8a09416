//===- NanosecondStep.h - A step in nanoseconds -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predictions are in the ticks of a problem, and measurements are in
// nanoseconds. To compare them, and to draw them on one axis, both are
// converted to steps in nanoseconds.
//
// If a step ends with a flush, time 0 is the start of its first action, and the
// step ends when the last worker is done. If steps overlap, each worker has a
// step of its own, the body that it repeats (SteadyStep.h). This step lasts
// from the end of the worker's previous body to the end of this body. Time 0 is
// then the start of the body that begins first.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_NANOSECONDSTEP_H
#define CHIMERA_COMPILER_SCHEDULE_NANOSECONDSTEP_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// The longest time, more than a hundred days. A double represents every whole
/// number up to this one exactly.
inline constexpr int64_t kMostNanoseconds = int64_t{1} << 53;

/// One step in nanoseconds.
struct NanosecondStep {
  Timing timing; ///< only starts, ends, makespan, busy and idle
  /// Without all-reduces if the step was measured.
  SyncAndUpdate syncAndUpdate;
  /// Empty if messages occupy no worker, or if the step was measured: a trace
  /// does not separate the wait in a receive from the receive itself.
  Occupations occupations;
  /// If steps overlap, the start of each worker's step. Otherwise empty.
  std::vector<int64_t> begins;

  bool overlaps() const { return !begins.empty(); }
  /// The time at which the last worker is done.
  int64_t end() const;
  /// The start of the worker's step.
  int64_t begin(size_t worker) const { return overlaps() ? begins[worker] : 0; }
  /// The end of the worker's step: the time at which the last worker is done
  /// or, if steps overlap, at which this worker is done.
  int64_t end(size_t worker) const {
    return overlaps() ? syncAndUpdate.ends[worker] : end();
  }
  /// The time of the step. If steps overlap, the time of the slowest worker.
  int64_t length() const;
  /// The time in which the worker runs actions and updates.
  int64_t busy(size_t worker) const;
  /// The time of the worker's step in which it runs neither actions nor
  /// updates.
  int64_t idle(size_t worker) const {
    return end(worker) - begin(worker) - busy(worker);
  }
  /// The time from the end of the worker's previous action, or from the start
  /// of its step, to the start of the action at `index`. It includes updates in
  /// between. If `index` is one past the last action, it is the time from the
  /// end of the last action to the end of the worker's step.
  int64_t waitBefore(size_t worker, size_t index) const;

  /// Computes the other members of `timing`, and `actionEnds` and `ends` of
  /// `syncAndUpdate`, from starts, ends and the work in `syncAndUpdate`.
  void computeTotals();
};

/// The prediction of `timeline` in nanoseconds. The timeline has one step that
/// ends with a flush or, if `begins` is given, a SteadyStep. None if it takes
/// more than kMostNanoseconds. Requires a unit that is a duration.
std::optional<NanosecondStep>
nanosecondStepOf(const Timeline &timeline,
                 std::span<const int64_t> begins = {});

/// A copy of `timeline` that shows `step`, in nanoseconds. It refers to `step`,
/// and to the problem and the schedule of `timeline`.
Timeline timelineOf(const Timeline &timeline, const NanosecondStep &step);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_NANOSECONDSTEP_H
