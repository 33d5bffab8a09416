//===- Windows.h - How many receives are posted ahead -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A worker has at most so many receives outstanding on a channel, its window:
// the first are posted at the start, each other as soon as the message a window
// earlier has been received. A message is on its way only when both ends have
// posted it, so a small window may delay what is sent early, and a large one
// takes memory. In which order a channel's messages are sent follows from the
// order of the worker that sends them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_WINDOWS_H
#define CHIMERA_COMPILER_SCHEDULE_WINDOWS_H

#include "compiler/schedule/Simulate.h"

#include <limits>

namespace chimera::schedule {

/// The messages of a schedule by channel. Requires that the schedule is valid;
/// refers to problem and schedule.
class Windows {
public:
  Windows(const Problem &problem, const Schedule &schedule);

  /// The smallest window that is free of deadlock: a worker that receives a
  /// message before d others that were sent earlier on its channel has all of
  /// them outstanding, so d + 1 at least. At least 1.
  int32_t needed() const;

  /// When every action runs with windows of `window`; larger ones where a
  /// channel needs it if `widened`. Without a critical path. Not complete
  /// exactly where `window` is below needed() and not widened.
  Timing simulate(int32_t window, bool widened) const;

  /// The smallest window, widened, with which the schedule ends as soon as with
  /// any of up to `most`: 1 where messages take no time on their way. `most` is
  /// at least 1.
  int32_t choose(int32_t most = std::numeric_limits<int32_t>::max()) const;

  /// The most messages of a channel: no larger window differs from this one.
  int32_t messages() const;

  /// The most bytes that each worker's outstanding receives need.
  std::vector<int64_t> bytes(int32_t window, bool widened) const;

private:
  struct Channel {
    int32_t worker; ///< that receives
    int32_t needed = 1;
    int32_t messages = 0;
    int64_t bytes = 0; ///< of the largest
  };

  int32_t windowOf(const Channel &channel, int32_t window, bool widened) const;

  const Problem &problem;
  const Schedule &schedule;
  std::vector<Channel> channels;
  MessageNumbers numbers;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_WINDOWS_H
