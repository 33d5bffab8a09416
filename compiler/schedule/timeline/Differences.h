//===- Differences.h - Where a run was not as predicted ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H
#define CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H

#include "compiler/schedule/timeline/ClockedStep.h"

namespace chimera::schedule {

/// A time of one step, where what ran differs from what was predicted.
struct Difference {
  Turn turn; ///< the action; for a wait also the index behind the last one
  int64_t predicted, measured; ///< ns

  int64_t change() const { return measured - predicted; }
};

/// What may differ. Text, pictures and traces walk `differenceKinds()`.
struct DifferenceKind {
  const char *name; ///< "durations"
  /// The time that the kind is about, ns.
  int64_t (*time)(const ClockedStep &step, Turn turn);
  bool isAlsoBehind; ///< the actions of a worker, where it reduces and updates
  bool hasRatio;     ///< one that says something
  /// What a difference is, without its times: "F3 of stage 1 on P1", "P0 waits
  /// 8 ms longer before B2 of stage 0".
  std::string (*describe)(const Timeline &timeline, const Difference &of);
};

/// Durations of actions, waits before them, their starts.
std::span<const DifferenceKind> differenceKinds();

/// The largest differences of a kind, at most `most`, the largest first and
/// those that are equally large by worker, then in its order. Steps that are
/// alike have none. Requires steps of one schedule.
std::vector<Difference> largestDifferences(const DifferenceKind &kind,
                                           const ClockedStep &predicted,
                                           const ClockedStep &measured,
                                           size_t most);

/// "F3 of stage 1 on P1: 12.4 ms measured, 10.1 ms predicted, +22.8 %".
/// Requires a timeline in nanoseconds, of the same schedule.
std::string describe(const Timeline &timeline, const DifferenceKind &kind,
                     const Difference &difference);

/// "12.4 ms measured, 10.1 ms predicted"; and ", +22.8 %", unless 0 was
/// predicted.
std::string describeTimes(const TimeScale &scale, int64_t predicted,
                          int64_t measured);
std::string describeRatio(int64_t predicted, int64_t measured);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_DIFFERENCES_H
