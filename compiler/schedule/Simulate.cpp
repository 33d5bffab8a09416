//===- Simulate.cpp - When every action runs ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Simulate.h"

#include <algorithm>

namespace chimera::schedule {

namespace {

/// Fills what follows from the starts: makespan, idle time, peaks.
void summarize(const Problem &problem, const Schedule &schedule, bool unitCosts,
               Timing &timing) {
  size_t workers = schedule.workers.size();
  timing.idle.assign(workers, 0);
  timing.peakActivations.assign(workers, 0);
  std::vector<int64_t> busy(workers, 0);
  for (size_t w = 0; w < workers; ++w) {
    int32_t held = 0;
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      if (timing.starts[w][i] < 0)
        continue;
      int64_t cost = unitCosts ? 1 : problem.cost(action.kind, action.stage);
      busy[w] += cost;
      timing.makespan = std::max(timing.makespan, timing.starts[w][i] + cost);
      // Actions of one worker never overlap, so its order is the order of
      // acquiring and releasing.
      if (action.kind == Kind::Forward)
        timing.peakActivations[w] = std::max(timing.peakActivations[w], ++held);
      else if (action.kind != Kind::InputGradient)
        --held;
    }
  }
  for (size_t w = 0; w < workers; ++w)
    timing.idle[w] = timing.makespan - busy[w];
}

/// Runs the order to its end: a stack holds the workers whose next action may
/// have become ready.
class Simulation {
public:
  Simulation(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), ids(problem),
        done(ids.count(), -1), next(schedule.workers.size(), 0),
        free(schedule.workers.size(), 0) {}

  Timing run() {
    Timing timing;
    size_t workers = schedule.workers.size();
    timing.starts.resize(workers);
    for (size_t w = 0; w < workers; ++w)
      timing.starts[w].assign(schedule.workers[w].size(), -1);
    for (size_t w = workers; w-- > 0;)
      ready.push_back(static_cast<int32_t>(w));
    while (!ready.empty()) {
      int32_t worker = ready.back();
      ready.pop_back();
      advance(worker, timing.starts[worker]);
    }
    for (size_t w = 0; w < workers; ++w)
      timing.complete &= next[w] == schedule.workers[w].size();
    return timing;
  }

private:
  /// When `action` may start on `worker`, or -1 if what it needs has not run.
  int64_t readyAt(const Action &action, int32_t worker) const {
    const std::vector<int32_t> &place =
        problem.pipelines[action.pipeline].workers;
    int64_t time = free[worker];
    auto need = [&](int32_t k, int32_t stage) {
      int64_t end = done[ids.at(k, stage, action.microBatch)];
      if (end < 0)
        return false;
      time =
          std::max(time, end + (place[stage] == worker ? 0 : problem.latency));
      return true;
    };
    auto stages = static_cast<int32_t>(problem.stages.size());
    switch (action.kind) {
    case Kind::Forward:
      if (action.stage > 0 && !need(0, action.stage - 1))
        return -1;
      break;
    case Kind::Backward:
    case Kind::InputGradient:
      if (!need(0, action.stage) ||
          (action.stage + 1 < stages && !need(1, action.stage + 1)))
        return -1;
      break;
    case Kind::WeightGradient:
      if (!need(1, action.stage))
        return -1;
      break;
    }
    return time;
  }

  void advance(int32_t worker, std::vector<int64_t> &starts) {
    const std::vector<Action> &order = schedule.workers[worker];
    while (next[worker] < order.size()) {
      const Action &action = order[next[worker]];
      int64_t start = readyAt(action, worker);
      if (start < 0)
        return;
      starts[next[worker]++] = start;
      int64_t end = start + problem.cost(action.kind, action.stage);
      free[worker] = end;
      done[*ids.find(action)] = end;
      wake(action, worker);
    }
  }

  /// Looks again at the worker that may wait for `action`.
  void wake(const Action &action, int32_t worker) {
    const std::vector<int32_t> &place =
        problem.pipelines[action.pipeline].workers;
    int32_t stage = action.stage;
    if (action.kind == Kind::Forward)
      ++stage;
    else if (action.kind != Kind::WeightGradient)
      --stage;
    if (stage >= 0 && stage < static_cast<int32_t>(place.size()) &&
        place[stage] != worker)
      ready.push_back(place[stage]);
  }

  const Problem &problem;
  const Schedule &schedule;
  ActionIds ids;
  std::vector<int64_t> done;
  std::vector<size_t> next;
  std::vector<int64_t> free;
  std::vector<int32_t> ready;
};

} // namespace

double Timing::bubbleRatio() const {
  int64_t total = 0;
  for (int64_t time : idle)
    total += time;
  if (makespan == 0 || idle.empty())
    return 0;
  return static_cast<double>(total) /
         (static_cast<double>(makespan) * static_cast<double>(idle.size()));
}

Timing simulate(const Problem &problem, const Schedule &schedule) {
  Timing timing = Simulation(problem, schedule).run();
  summarize(problem, schedule, /*unitCosts=*/false, timing);
  return timing;
}

Timing slotTiming(const Problem &problem, const Schedule &schedule) {
  Timing timing;
  timing.starts = schedule.slots;
  summarize(problem, schedule, /*unitCosts=*/true, timing);
  return timing;
}

} // namespace chimera::schedule
