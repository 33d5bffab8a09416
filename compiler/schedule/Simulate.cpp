//===- Simulate.cpp - The simulation of a schedule ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Simulate.h"

#include "compiler/schedule/ActionRules.h"
#include "compiler/schedule/CoreGroups.h"
#include "compiler/schedule/Memory.h"
#include "compiler/schedule/Messages.h"
#include "compiler/schedule/SharedCores.h"
#include "compiler/schedule/UpdatesAfter.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// Adds idle times and peaks to a timing that has starts, makespan and busy
/// times. If the schedule does not complete, peaks include only the actions
/// that ran.
void summarize(const Problem &problem, const Schedule &schedule,
               Timing &timing) {
  std::vector<int64_t> resident = residentBytes(problem);
  MemoryPeaks peaks(problem);
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::span<const Action> order = schedule.workers[w];
    size_t ran = order.size() - std::ranges::count(timing.starts[w], -1);
    timing.idle.push_back(timing.makespan - timing.busy[w]);
    MemoryPeak peak = peaks.peakOf(order.first(ran), resident[w]);
    timing.peakActivations.push_back(peak.activations);
    timing.peakBytes.push_back(peak.bytes);
  }
}

} // namespace

/// Simulates an order. The stack `ready` has the workers that may be able to
/// run their next action. This class is not in the anonymous namespace, because
/// StepSimulation::Impl derives from it.
class Simulation {
public:
  /// If `numbers` is null, every receive is posted in time.
  Simulation(const Problem &problem, const Schedule &schedule,
             const MessageNumbers *numbers = nullptr)
      : problem(problem), schedule(schedule), numbers(numbers), rules(problem),
        updates(updatesAfter(problem, schedule)) {
    if (numbers)
      received.resize(numbers->windows.size());
  }

  /// Computes when each action starts and ends, into `timing`. `summarize` adds
  /// the other values. Worker w begins at begins[w]; if `begins` is empty, all
  /// workers begin at 0.
  void run(std::span<const int64_t> begins, Timing &timing) {
    const size_t count = schedule.workers.size();
    timing.starts.resize(count);
    timing.ends.resize(count);
    workers.assign(count, Worker());
    done.assign(rules.actionIds().count(), -1);
    for (size_t w = count; w-- > 0;) {
      timing.starts[w].assign(schedule.workers[w].size(), -1);
      timing.ends[w].assign(schedule.workers[w].size(), -1);
      if (!begins.empty())
        workers[w].free = workers[w].end = begins[w];
      ready.push_back(static_cast<int32_t>(w));
    }
    while (!ready.empty()) {
      int32_t worker = ready.back();
      ready.pop_back();
      advance(worker, timing.starts[worker], timing.ends[worker]);
    }
    timing.complete = true;
    timing.makespan = 0;
    timing.busy.resize(count);
    timing.occupied.resize(count);
    timing.spans.resize(count);
    for (size_t w = 0; w < count; ++w) {
      const Worker &worker = workers[w];
      timing.complete &= worker.next == schedule.workers[w].size();
      timing.busy[w] = worker.busy;
      timing.occupied[w] = worker.occupied;
      timing.spans[w] = worker.free - worker.begins;
      timing.makespan = std::max(timing.makespan, worker.end);
    }
  }

  /// See StepSimulation::delayOf. In `timing` all workers begin at 0.
  std::optional<int64_t> delayOf(std::span<const int64_t> begins,
                                 const Timing &timing) const {
    std::optional<int64_t> delay;
    int64_t held = 0; // largest delay of a worker's begin
    for (size_t w = 0; w < begins.size(); ++w) {
      if (schedule.workers[w].empty())
        return std::nullopt;
      const ActionRule &rule = rules.ruleOf(schedule.workers[w].front());
      const int64_t late =
          begins[w] - (timing.starts[w].front() - rule.receive);
      held = std::max(held, late);
      if (rule.otherStage != 0)
        continue;
      if (delay.value_or(late) != late)
        return std::nullopt;
      delay = late;
    }
    return delay && held <= *delay ? delay : std::nullopt;
  }

  /// The critical path. Walks back from the action that ends last. Each step of
  /// the walk goes to the action whose end, or whose message, allowed the
  /// current action to start. Requires that all actions ran.
  std::vector<ActionRef> criticalPath(const Timing &timing) const {
    std::vector<ActionRef> path;
    ActionRef ref{-1, -1};
    // For each worker, the index of its last action that can be on the rest of
    // the path.
    std::vector<int32_t> last;
    for (size_t w = 0; w < workers.size(); ++w) {
      last.push_back(static_cast<int32_t>(workers[w].next) - 1);
      if (workers[w].next > 0 && workers[w].end == timing.makespan)
        ref = {static_cast<int32_t>(w), last[w]};
    }
    while (ref.index >= 0) {
      path.push_back(ref);
      last[ref.worker] = ref.index;
      ref = before(timing, ref, last);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

private:
  struct Worker {
    size_t next = 0;
    int64_t end = 0;  ///< of its last action
    int64_t free = 0; ///< when its last action's message has left the worker,
                      ///< and the update after it has ended
    /// The time at which its first action began, or the receive before its
    /// first action.
    int64_t begins = 0;
    int64_t waitsFor = -1; ///< id of the last action that it had to wait for
    int64_t busy = 0, occupied = 0;
  };

  /// The time at which the receive of the message of action `id` is posted, or
  /// -1 if the receiving worker cannot post it yet.
  int64_t postedAt(int64_t id) const {
    int32_t channel = numbers->channel[id];
    int64_t before = numbers->number[id] - numbers->windows[channel];
    if (before < 0)
      return 0;
    const std::vector<int64_t> &times = received[channel];
    return before < std::ssize(times) ? times[before] : -1;
  }

  /// Runs actions of worker `w` until it has to wait.
  void advance(int32_t w, std::span<int64_t> starts, std::span<int64_t> ends) {
    Worker &worker = workers[w];
    const std::vector<Action> &order = schedule.workers[w];
    for (; worker.next < order.size(); ++worker.next) {
      const Action &action = order[worker.next];
      const ActionRule &rule = rules.ruleOf(action);
      int64_t id = rules.idOf(action, rule), start = worker.free;
      // The dependency on the same stage runs on this worker too. If this
      // dependency has ended, it ended before the worker became free, so it
      // cannot delay the action.
      if (rule.sameStage != 0 && done[id + rule.sameStage] < 0) {
        worker.waitsFor = id + rule.sameStage;
        return;
      }
      int64_t other = id + rule.otherStage;
      if (rule.otherStage != 0) {
        if (done[other] < 0) {
          worker.waitsFor = other;
          return;
        }
        start = std::max(start, done[other] + rule.delay);
        if (numbers && rule.receivesMessage) {
          int64_t posted = postedAt(other);
          if (posted < 0)
            return;
          start = std::max(start, posted + rule.flight);
        }
      }
      if (worker.next == 0)
        worker.begins = start;
      start += rule.receive;
      starts[worker.next] = start;
      if (numbers && rule.receivesMessage)
        received[numbers->channel[other]].push_back(start);
      ends[worker.next] = worker.end = start + rule.cost;
      worker.free = worker.end + rule.send + updateTimeAfter(w, worker.next);
      worker.busy += rule.cost;
      worker.occupied += rule.receive + worker.free - worker.end;
      for (int32_t m = 0; m < action.microBatches; ++m)
        done[rules.actionIds().atLaterMicroBatch(id, m)] = worker.end;
      if (rule.receiver >= 0 && workers[rule.receiver].waitsFor == id)
        ready.push_back(rule.receiver);
    }
  }

  int64_t updateTimeAfter(int32_t worker, size_t index) const {
    return updates.empty() ? 0 : updates[worker][index].time();
  }

  /// The action that determined the start of the action at `ref`: the worker
  /// became free after this action, or its message arrived, at exactly that
  /// start. Its index is -1 if there is none.
  ActionRef before(const Timing &timing, const ActionRef &ref,
                   std::span<const int32_t> last) const {
    const std::vector<Action> &order = schedule.workers[ref.worker];
    const std::vector<int64_t> &starts = timing.starts[ref.worker];
    const Action &action = order[ref.index];
    const ActionRule &rule = rules.ruleOf(action);
    // The start of the action, or of the receive before it.
    int64_t start = starts[ref.index] - rule.receive;
    if (ref.index > 0) {
      const ActionRule &previous = rules.ruleOf(order[ref.index - 1]);
      if (starts[ref.index - 1] + previous.cost + previous.send +
              updateTimeAfter(ref.worker, ref.index - 1) ==
          start)
        return {ref.worker, ref.index - 1};
    }
    if (rule.otherStage == 0)
      return {ref.worker, -1};
    int64_t end = done[rules.idOf(action, rule) + rule.otherStage];
    if (end + rule.delay != start)
      return {ref.worker, -1};
    return {rule.sender,
            lastBefore(end, timing.starts[rule.sender], last[rule.sender])};
  }

  /// The last action that starts before `time`. Its index is at most `most` and
  /// probably near `most`, so the search goes back from `most` in steps that
  /// double.
  static int32_t lastBefore(int64_t time, std::span<const int64_t> starts,
                            int32_t most) {
    int32_t step = 1, least = most;
    for (; least > 0 && starts[least] >= time; step *= 2)
      least = std::max(least - step, 0);
    auto begin = starts.begin();
    auto at = std::lower_bound(begin + least, begin + most + 1, time);
    return static_cast<int32_t>(at - begin) - 1;
  }

  const Problem &problem;
  const Schedule &schedule;
  const MessageNumbers *numbers;
  ActionRules rules;
  /// For each channel, the times at which its messages were received, in the
  /// order in which they were received.
  std::vector<std::vector<int64_t>> received;
  /// End of each action, -1 before it has run. The ids of all micro-batches of
  /// a forward have the forward's end.
  std::vector<int64_t> done;
  std::vector<Worker> workers;
  /// The update after each action; empty if no update or all-reduce takes time
  /// between actions.
  std::vector<std::vector<UpdateAfter>> updates;
  std::vector<int32_t> ready;
};

Timing simulate(const Problem &problem, const Schedule &schedule) {
  Timing timing;
  if (sharesCores(problem)) {
    timing = simulateSharing(problem, schedule);
  } else {
    Simulation simulation(problem, schedule);
    simulation.run(/*begins=*/{}, timing);
    if (timing.complete)
      timing.criticalPath = simulation.criticalPath(timing);
  }
  summarize(problem, schedule, timing);
  return timing;
}

Timing simulate(const Problem &problem, const Schedule &schedule,
                std::span<const int64_t> begins) {
  if (sharesCores(problem))
    return simulateSharing(problem, schedule, begins);
  Timing timing;
  Simulation(problem, schedule).run(begins, timing);
  return timing;
}

class StepSimulation::Impl : public Simulation {
public:
  using Simulation::Simulation;
  Timing timing;
};

StepSimulation::StepSimulation(const Problem &problem, const Schedule &schedule)
    : impl(std::make_unique<Impl>(problem, schedule)) {
  impl->run(/*begins=*/{}, first);
}

StepSimulation::~StepSimulation() = default;

const Timing &StepSimulation::run(std::span<const int64_t> begins) {
  impl->run(begins, impl->timing);
  return impl->timing;
}

std::optional<int64_t>
StepSimulation::delayOf(std::span<const int64_t> begins) const {
  return impl->delayOf(begins, first);
}

Timing simulate(const Problem &problem, const Schedule &schedule,
                const MessageNumbers &numbers) {
  Timing timing;
  if (sharesCores(problem))
    timing = simulateSharing(problem, schedule, /*begins=*/{}, &numbers);
  else
    Simulation(problem, schedule, &numbers).run(/*begins=*/{}, timing);
  summarize(problem, schedule, timing);
  return timing;
}

Timing slotTiming(const Problem &problem, const Schedule &schedule) {
  Timing timing;
  timing.starts = timing.ends = schedule.slots;
  timing.occupied.assign(schedule.workers.size(), 0);
  for (std::vector<int64_t> &ends : timing.ends)
    for (int64_t &end : ends)
      ++end;
  for (const std::vector<int64_t> &slots : schedule.slots) {
    timing.busy.push_back(std::ssize(slots));
    timing.spans.push_back(slots.empty() ? 0
                                         : slots.back() + 1 - slots.front());
    if (!slots.empty())
      timing.makespan = std::max(timing.makespan, slots.back() + 1);
  }
  summarize(problem, schedule, timing);
  return timing;
}

} // namespace chimera::schedule
