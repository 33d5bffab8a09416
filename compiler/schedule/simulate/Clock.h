//===- Clock.h - How long work takes ----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two clocks of a simulation (Simulation.h). A clock decides how long the
// work of a worker takes, and which worker runs next:
//
//   OwnCores      each worker has a core of its own
//   SharedCores   the workers of a node share its cores
//
// Both have the same functions. `work` and `waitUntil` advance `now`, the time
// of the worker, and return true. They return false if the time at which the
// worker continues is not known yet. Then `next` returns the worker later.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_CLOCK_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_CLOCK_H

#include "compiler/schedule/model/AllReduceTime.h"
#include "compiler/schedule/model/CoreGroups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>

namespace chimera::schedule {

/// A worker that continues at a time.
template <typename Time> struct Wakeup {
  int32_t worker;
  Time time;
};

/// The clock of workers that have cores of their own. Work takes the same time
/// whatever other workers do. So its end is known when it begins, and workers
/// need not run in the order of time: a worker runs on until it needs something
/// that no other worker has computed yet.
class OwnCores {
public:
  using Time = int64_t;
  static constexpr Time kUnknown = -1;
  static constexpr bool kSuspends = false;

  explicit OwnCores(const Workload &) {}

  bool work(int32_t, Time &now, int64_t amount) {
    now += amount;
    return true;
  }
  bool waitUntil(int32_t, Time &now, Time time) {
    now = std::max(now, time);
    return true;
  }
  /// Lets `worker` continue.
  void wake(int32_t worker, Time) { awake.push_back(worker); }
  /// The next worker that can continue, if any. Its time is 0, because a worker
  /// continues at the time at which it stopped.
  std::optional<Wakeup<Time>> next() {
    if (awake.empty())
      return std::nullopt;
    int32_t worker = awake.back();
    awake.pop_back();
    return Wakeup<Time>{worker, 0};
  }

  static Time add(Time time, int64_t amount) {
    return saturatingAdd(time, amount);
  }
  static int64_t ticks(Time time) { return time; }

private:
  std::vector<int32_t> awake;
};

/// The clock of workers that share the cores of their node equally. While k
/// ranks of a node have work, each progresses at min(1, cores / k) of its full
/// speed. Waits need no core. All events happen in the order of time. Takes
/// O(log workers) for each event.
///
/// In this example, gpipe runs on one core, with forwards of 2 and backwards of
/// 4. Each action takes twice its cost while both workers compute:
///
///    P0  FF FFFF .. .... BBBBBBBB BBBB
///    P1  .. FFFF FF BBBB BBBBBBBB ....
///
/// Only one data-parallel copy is simulated, because the other copies do the
/// same work at the same time (CoreGroups.h).
class SharedCores {
public:
  using Time = double;
  static constexpr Time kUnknown = std::numeric_limits<double>::infinity();
  static constexpr bool kSuspends = true;

  explicit SharedCores(const Workload &workload)
      : devices(workload.node->devices) {
    for (const CoreGroup &group : coreGroups(workload))
      groups.emplace_back(group.cores);
  }

  bool work(int32_t worker, Time &now, int64_t amount) {
    if (amount == 0)
      return true;
    Group &group = groups[worker / devices];
    group.begin(now, worker, amount);
    expectNextEnd(group);
    return false;
  }
  bool waitUntil(int32_t worker, Time &now, Time time) {
    if (time <= now)
      return true;
    wake(worker, time);
    return false;
  }
  /// Lets `worker` continue at `time`.
  void wake(int32_t worker, Time time) {
    events.push({time, numberOfEvents++, worker, nullptr, 0});
  }
  /// The next worker that continues, if any, and the time.
  std::optional<Wakeup<Time>> next() {
    while (!events.empty()) {
      const Event event = events.top();
      events.pop();
      if (!event.group)
        return Wakeup<Time>{event.worker, event.time};
      if (event.turn != event.group->turn)
        continue; // other work began or ended after this prediction
      int32_t worker = event.group->end();
      expectNextEnd(*event.group);
      return Wakeup<Time>{worker, event.time};
    }
    return std::nullopt;
  }

  static Time add(Time time, int64_t amount) {
    return time + static_cast<Time>(amount);
  }
  /// `time` in whole ticks. Times are limited to 2^61 ticks, which are decades
  /// even if a tick is a nanosecond.
  static int64_t ticks(Time time) {
    return std::llround(std::min(time, 0x1p61));
  }

private:
  /// Workers that share cores. All workers that have work progress at the same
  /// speed. So one counter is enough: `done` grows by the work that each of
  /// these workers does. A worker ends its work when `done` has grown by that
  /// work, even if the speed changes in between.
  class Group {
  public:
    explicit Group(double cores) : cores(cores) {}

    void begin(Time time, int32_t worker, int64_t amount) {
      if (!running.empty())
        done += (time - now) * speed();
      now = time;
      running.emplace(done + static_cast<double>(amount), worker);
    }
    bool isIdle() const { return running.empty(); }
    /// The time at which the next worker ends its work, if no other worker
    /// begins work before that time.
    Time nextEnd() const {
      return now + (running.top().first - done) / speed();
    }
    /// Ends the work of the worker that is next to end, and returns this
    /// worker.
    int32_t end() {
      now = nextEnd();
      auto [end, worker] = running.top();
      done = end;
      running.pop();
      return worker;
    }

    int64_t turn = 0; ///< how often work began or ended

  private:
    double speed() const {
      return std::min(1.0, cores / static_cast<double>(running.size()));
    }

    using Running = std::pair<double, int32_t>; ///< value of `done` at its end,
                                                ///< and worker
    double cores;
    Time now = 0;
    double done = 0;
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  };

  /// A worker continues or, if `group` is set, a worker of that group ends its
  /// work, unless the group has another `turn` by then.
  struct Event {
    Time time;
    int64_t number; ///< order of creation, for events at the same time
    int32_t worker;
    Group *group;
    int64_t turn;

    bool operator>(const Event &other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  /// Predicts the next end of work in `group`.
  void expectNextEnd(Group &group) {
    ++group.turn;
    if (!group.isIdle())
      events.push({group.nextEnd(), numberOfEvents++, 0, &group, group.turn});
  }

  int32_t devices; ///< of a node
  std::vector<Group> groups;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t numberOfEvents = 0;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_CLOCK_H
