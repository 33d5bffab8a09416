//===- Differences.h - Differences between run and prediction ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H
#define CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H

#include "compiler/schedule/timeline/NanosecondStep.h"

namespace chimera::schedule {

/// A time that differs between prediction and measurement, in nanoseconds.
struct Difference {
  ActionRef ref; ///< for a wait, `index` may be one past the last action
  int64_t predicted, measured; ///< ns

  int64_t change() const { return measured - predicted; }
};

/// A kind of difference. Text, pictures and traces all read
/// `differenceKinds()`.
struct DifferenceKind {
  const char *name; ///< for example "durations"
  /// The compared time of an action, in nanoseconds.
  int64_t (*time)(const NanosecondStep &step, ActionRef ref);
  /// True if the time after a worker's last action (all-reduces and updates) is
  /// compared as well.
  bool includesEndOfStep;
  /// True if the ratio of the measured to the predicted time has a meaning.
  bool hasRatio;
  /// The difference as text, without its times: "F3 of stage 1 on P1", "P0
  /// waits 8 ms longer before B2 of stage 0".
  std::string (*text)(const Timeline &timeline, const Difference &of);
};

/// Three kinds: durations of actions, waits before actions, and starts of
/// actions.
std::span<const DifferenceKind> differenceKinds();

/// The `most` largest differences of a kind, largest first. Equal differences
/// are sorted by worker, then by position in the worker's order. Empty if the
/// steps are equal. Requires two steps of one schedule.
std::vector<Difference> largestDifferences(const DifferenceKind &kind,
                                           const NanosecondStep &predicted,
                                           const NanosecondStep &measured,
                                           size_t most);

/// "F3 of stage 1 on P1: 12.4 ms measured, 10.1 ms predicted, +22.8 %".
/// Requires a timeline of the same schedule in nanoseconds.
std::string describe(const Timeline &timeline, const DifferenceKind &kind,
                     const Difference &difference);

/// The times and the ratio in the text of `describe`: "12.4 ms measured, 10.1
/// ms predicted", and ", +22.8 %". The ratio is empty if the prediction is 0.
std::string describeTimes(const TimeScale &scale, int64_t predicted,
                          int64_t measured);
std::string describeRatio(int64_t predicted, int64_t measured);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H
