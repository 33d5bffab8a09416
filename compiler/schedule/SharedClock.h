//===- SharedClock.h - The progress of workers that share cores -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SHAREDCLOCK_H
#define CHIMERA_COMPILER_SCHEDULE_SHAREDCLOCK_H

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

namespace chimera::schedule {

/// The current work of a group of workers that share cores. All workers that
/// have work progress at the same speed. So one clock (`workDone`) is enough:
/// it advances by the work that each of these workers does. A worker ends its
/// work when the clock has advanced by that work, even if the speed changes in
/// between.
class SharedClock {
public:
  explicit SharedClock(double cores) : cores(cores) {}

  /// Starts `work` (in ticks at full speed) on `worker` at `time`.
  void begin(double time, int32_t worker, int64_t work) {
    if (!running.empty())
      workDone += (time - now) * speed();
    now = time;
    running.emplace(workDone + static_cast<double>(work), worker);
  }
  bool isIdle() const { return running.empty(); }
  /// The time at which the next worker ends its work, if no other worker begins
  /// work before that time. Requires that some worker has work.
  double nextEnd() const {
    return now + (running.top().first - workDone) / speed();
  }
  /// Ends the work of the worker that is next to end, and returns this worker.
  int32_t end() {
    now = nextEnd();
    workDone = running.top().first;
    int32_t worker = running.top().second;
    running.pop();
    return worker;
  }

private:
  double speed() const {
    return std::min(1.0, cores / static_cast<double>(running.size()));
  }

  using Running = std::pair<double, int32_t>; ///< value of `workDone` at which
                                              ///< it ends, and worker
  double cores;
  double now = 0, workDone = 0;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SHAREDCLOCK_H
