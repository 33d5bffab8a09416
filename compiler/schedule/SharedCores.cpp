//===- SharedCores.cpp - Workers that share cores -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/SharedCores.h"

#include "compiler/schedule/ActionRules.h"
#include "compiler/schedule/Steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace chimera::schedule {

std::vector<CoreGroup> coreGroups(const Workload &workload) {
  std::vector<CoreGroup> groups;
  if (!workload.node || workload.node->cores == 0)
    return groups;
  const int64_t devices = workload.node->devices;
  const int64_t ranks = int64_t{workload.workers} * workload.width;
  for (int64_t first = 0; first < workload.workers; first += devices) {
    auto onNode = static_cast<double>(std::min(devices, ranks - first));
    auto workers =
        static_cast<int32_t>(std::min(devices, workload.workers - first));
    groups.push_back({workers, workload.node->cores * workers / onNode});
  }
  return groups;
}

namespace {

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

/// Runs the order to its end, one event after another.
class SharingSimulation {
public:
  SharingSimulation(const Problem &problem, const Schedule &schedule,
                    const MessageNumbers *numbers)
      : schedule(schedule), numbers(numbers), rules(problem),
        sent(rules.numbering().count(), kNever),
        workers(schedule.workers.size()),
        behind(updatesBehind(problem, schedule)),
        devices(problem.node->devices) {
    for (const CoreGroup &group : coreGroups(problem))
      clocks.emplace_back(group.cores);
    turns.resize(clocks.size());
    if (numbers)
      received.resize(numbers->windows.size());
    for (const std::vector<Action> &order : schedule.workers)
      timing.starts.emplace_back(order.size(), -1);
    timing.ends = timing.receiveBegins = timing.sendEnds = timing.starts;
  }

  Timing run(std::span<const int64_t> begins) {
    for (size_t w = 0; w < workers.size(); ++w) {
      int64_t begin = begins.empty() ? 0 : begins[w];
      workers[w].free = begin;
      wake(static_cast<int32_t>(w), static_cast<double>(begin));
    }
    while (!events.empty()) {
      const Event event = events.top();
      events.pop();
      if (!event.isOfClock) {
        proceed(event.who, event.time);
      } else if (event.turn == turns[event.who]) {
        int32_t worker = clocks[event.who].end();
        expectEnd(event.who);
        proceed(worker, event.time);
      } // else others have begun since
    }
    for (size_t w = 0; w < workers.size(); ++w) {
      const Worker &worker = workers[w];
      timing.complete &= worker.next == schedule.workers[w].size();
      timing.busy.push_back(worker.busy);
      timing.occupied.push_back(worker.occupied);
      timing.span.push_back(worker.free - worker.begins);
      if (worker.next > 0)
        timing.makespan =
            std::max(timing.makespan, timing.ends[w][worker.next - 1]);
    }
    return std::move(timing);
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// What a worker does, or has done when it goes on.
  enum class Phase : uint8_t { Wait, Receive, Act, Send, Update };

  struct Worker {
    size_t next = 0;
    Phase phase = Phase::Wait;
    int64_t waitsFor = -1; ///< the action that held it up last
    /// When its first action began, or what that receives; when it is done.
    int64_t begins = 0, free = 0;
    int64_t busy = 0, occupied = 0;
  };

  /// A worker may go on, or the next of a clock's workers ends.
  struct Event {
    double time;
    int64_t number; ///< of those at one time the first made comes first
    bool isOfClock;
    int32_t who;
    int64_t turn; ///< of the clock, when this was expected

    bool operator>(const Event &other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };

  static int64_t tick(double time) { return std::llround(time); }

  void wake(int32_t worker, double time) {
    events.push({time, numberOfEvents++, false, worker, 0});
  }

  /// What the clock did expect no longer holds.
  void expectEnd(int32_t clock) {
    ++turns[clock];
    if (!clocks[clock].isIdle())
      events.push({clocks[clock].nextEnd(), numberOfEvents++, true, clock,
                   turns[clock]});
  }

  /// When the message that `worker` awaits for its next action is there, or
  /// what that needs of its own worker; kNever where nobody knows yet.
  double readyAt(Worker &worker, const ActionRule &rule, int64_t id) const {
    // What it needs of its own stage ends before the worker is free.
    if (rule.own != 0 && sent[id + rule.own] == kNever)
      return kNever;
    if (rule.other == 0)
      return 0;
    const int64_t other = id + rule.other;
    if (sent[other] == kNever)
      worker.waitsFor = other;
    double from = sent[other];
    if (numbers && rule.isAwaited)
      from = std::max(from, postedAt(other));
    return from + static_cast<double>(rule.flight);
  }

  /// When the receive of what the action `id` makes is posted, kNever if it has
  /// to wait for its own worker.
  double postedAt(int64_t id) const {
    int32_t channel = numbers->channel[id];
    int64_t before = numbers->number[id] - numbers->windows[channel];
    const std::vector<double> &times = received[channel];
    if (before < 0)
      return 0;
    return before < std::ssize(times) ? times[before] : kNever;
  }

  /// Worker `w` has ended its phase, or waits and is woken.
  void proceed(int32_t w, double now) {
    Worker &worker = workers[w];
    const std::vector<Action> &order = schedule.workers[w];
    for (int64_t work = 0; work == 0;) {
      if (worker.next == order.size())
        return;
      const Action &action = order[worker.next];
      const ActionRule &rule = rules.of(action);
      const int64_t id = rules.idOf(action, rule);
      switch (worker.phase) {
      case Phase::Wait:
        if (double ready = readyAt(worker, rule, id); ready > now) {
          if (ready < kNever)
            wake(w, ready);
          return;
        }
        timing.receiveBegins[w][worker.next] = tick(now);
        if (worker.next == 0)
          worker.begins = tick(now);
        worker.phase = Phase::Receive;
        work = rule.receive;
        break;
      case Phase::Receive:
        timing.starts[w][worker.next] = tick(now);
        if (numbers && rule.isAwaited)
          received[numbers->channel[id + rule.other]].push_back(now);
        worker.phase = Phase::Act;
        work = rule.cost;
        break;
      case Phase::Act:
        timing.ends[w][worker.next] = tick(now);
        worker.phase = Phase::Send;
        work = rule.send;
        break;
      case Phase::Send:
        timing.sendEnds[w][worker.next] = tick(now);
        send(rule, id, action.microBatches, now);
        worker.phase = Phase::Update;
        work = behind.empty() ? 0 : behind[w][worker.next];
        break;
      case Phase::Update:
        endAction(w, tick(now));
        break;
      }
      if (work > 0) {
        clocks[w / devices].begin(now, w, work);
        expectEnd(w / devices);
      }
    }
  }

  void send(const ActionRule &rule, int64_t id, int32_t microBatches,
            double now) {
    for (int32_t m = 0; m < microBatches; ++m)
      sent[rules.numbering().later(id, m)] = now;
    if (rule.to >= 0 && workers[rule.to].waitsFor == id) {
      workers[rule.to].waitsFor = -1;
      wake(rule.to, now);
    }
  }

  void endAction(int32_t w, int64_t now) {
    Worker &worker = workers[w];
    int64_t time = timing.ends[w][worker.next] - timing.starts[w][worker.next];
    worker.busy += time;
    worker.occupied += now - timing.receiveBegins[w][worker.next] - time;
    worker.free = now;
    worker.phase = Phase::Wait;
    ++worker.next;
  }

  const Schedule &schedule;
  const MessageNumbers *numbers;
  ActionRules rules;
  Timing timing;
  /// When what each action makes has left its worker, kNever before that; a
  /// forward's is that of all its micro-batches.
  std::vector<double> sent;
  /// When the messages of each channel were received, in that order.
  std::vector<std::vector<double>> received;
  std::vector<Worker> workers;
  /// What follows each action; empty where nothing does.
  std::vector<std::vector<int64_t>> behind;
  int32_t devices; ///< of a node
  std::vector<SharedClock> clocks;
  std::vector<int64_t> turns; ///< of each clock: changes with what it has
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t numberOfEvents = 0;
};

} // namespace

bool sharesCores(const Workload &workload) {
  return std::ranges::any_of(coreGroups(workload), [](const CoreGroup &group) {
    return group.cores < group.workers;
  });
}

std::vector<double> slowdowns(const Workload &workload) {
  std::vector<double> all;
  for (const CoreGroup &group : coreGroups(workload))
    all.insert(all.end(), group.workers,
               std::max(1.0, group.workers / group.cores));
  all.resize(workload.workers, 1.0);
  return all;
}

Timing simulateSharing(const Problem &problem, const Schedule &schedule,
                       std::span<const int64_t> begins,
                       const MessageNumbers *numbers) {
  return SharingSimulation(problem, schedule, numbers).run(begins);
}

} // namespace chimera::schedule
