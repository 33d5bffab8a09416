//===- SharedClock.h - The work of workers that share cores -----*- C++ -*-===//
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

/// What the workers of a group have to do. All that work go on at one speed, so
/// one clock suffices, of what each has done since time 0: who has the least
/// left ends first, whatever the speed will be.
class SharedClock {
public:
  explicit SharedClock(double cores) : cores(cores) {}

  /// From `time` on `worker` has this much to do.
  void begin(double time, int32_t worker, int64_t work) {
    if (!running.empty())
      done += (time - now) * speed();
    now = time;
    running.emplace(done + static_cast<double>(work), worker);
  }
  bool isIdle() const { return running.empty(); }
  /// When the next one ends, if none begins before. Requires that one works.
  double nextEnd() const {
    return now + (running.top().first - done) / speed();
  }
  /// Ends that one, which is returned.
  int32_t end() {
    now = nextEnd();
    done = running.top().first;
    int32_t worker = running.top().second;
    running.pop();
    return worker;
  }

private:
  double speed() const {
    return std::min(1.0, cores / static_cast<double>(running.size()));
  }

  using Running = std::pair<double, int32_t>; ///< ends at what is done; worker
  double cores;
  double now = 0, done = 0;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SHAREDCLOCK_H
