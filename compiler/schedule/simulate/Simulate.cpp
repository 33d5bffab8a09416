//===- Simulate.cpp - The questions to the simulation ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"

#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulation.h"

#include <algorithm>
#include <cmath>

namespace chimera::schedule {

/// Adds idle times and peaks to a timing that has starts, makespan and busy
/// times. If the schedule does not complete, peaks include only the actions
/// that ran.
static void summarize(const Problem &problem, const Schedule &schedule,
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

/// Calls `visit(ref)` for each action.
template <typename Visit>
static void forEachAction(const Schedule &schedule, Visit visit) {
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (size_t i = 0; i < schedule.workers[w].size(); ++i)
      visit(ActionRef{static_cast<int32_t>(w), static_cast<int32_t>(i)});
}

template <typename Clock>
static Timing simulateWith(const StepGraph &graph,
                           const SimulateOptions &options,
                           const SimulationParts &parts) {
  Simulation<Clock> simulation(graph, parts);
  const bool isComplete = simulation.run(options.begins).complete;
  std::vector<ActionRef> path;
  if (isComplete && options.hasTotals && options.begins.empty() &&
      !parts.windows)
    path = simulation.criticalPath();
  Timing timing = simulation.takeTiming();
  timing.criticalPath = std::move(path);
  return timing;
}

/// Simulates with the clock that the problem needs.
static Timing simulateGraph(const StepGraph &graph,
                            const SimulateOptions &options,
                            const SimulationParts &parts) {
  return sharesCores(graph.problem)
             ? simulateWith<SharedCores>(graph, options, parts)
             : simulateWith<OwnCores>(graph, options, parts);
}

Timing simulate(const Problem &problem, const Schedule &schedule,
                const SimulateOptions &options) {
  StepGraph graph(problem, schedule);
  Timing timing;
  if (options.inDeviceOrder) {
    // Messages are posted in the order of a timing without this rule.
    timing = simulateGraph(graph,
                           {.begins = options.begins, .hasTotals = false}, {});
    if (timing.complete) {
      const DeviceOperations operations = deviceOperationsOf(graph, timing);
      timing = simulateGraph(graph, options, {.operations = &operations});
    }
  } else {
    timing = simulateGraph(graph, options, {.windows = options.windows});
  }
  if (options.hasTotals)
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

Occupations messageOccupationsOf(const Problem &problem,
                                 const Schedule &schedule,
                                 const Timing &timing) {
  StepGraph graph(problem, schedule);
  Occupations occupations(schedule.workers.size());
  forEachAction(schedule, [&](ActionRef ref) {
    const ActionSpan span = graph.spanOf(timing, ref);
    auto add = [&](const Span &of, int32_t peer, bool isSend) {
      if (of.begin < of.end)
        occupations[ref.worker].push_back({of, ref.index, peer, isSend});
    };
    const ActionRule &rule = graph.rules.ruleOf(graph.actionAt(ref));
    add(span.receive, rule.sender, false);
    add(span.send, rule.receiver, true);
  });
  return occupations;
}

/// The all-reduces and updates after the actions of a step with a flush.
static SyncAndUpdate afterActions(const Problem &problem,
                                  const Schedule &schedule,
                                  const Timing &timing) {
  SyncAndUpdateOrder order = syncAndUpdateOrderOf(
      problem, schedule, gradientReduces(problem, schedule, timing));
  const std::vector<double> slowdown = slowdowns(problem);
  for (size_t w = 0; w < order.items.size(); ++w)
    for (SyncAndUpdateOrder::WaitOrUpdate &item : order.items[w])
      item.update = static_cast<int64_t>(
          std::ceil(static_cast<double>(item.update) * slowdown[w]));
  StepGraph graph(problem, schedule);
  return Simulation<OwnCores>(graph, {.order = &order}).runAfter(timing);
}

/// The all-reduces and updates between the actions of steps that overlap.
static SyncAndUpdate betweenActions(const Problem &problem,
                                    const Schedule &schedule,
                                    const Timing &timing) {
  StepGraph graph(problem, schedule);
  SyncAndUpdate result;
  result.work.resize(schedule.workers.size());
  for (const std::vector<int64_t> &ends : timing.ends)
    result.actionEnds.push_back(ends.empty() ? 0 : ends.back());
  result.ends = result.actionEnds;
  if (graph.updates.empty())
    return result;
  forEachAction(schedule, [&](ActionRef ref) {
    const Action &action = graph.actionAt(ref);
    const ActionSpan span = graph.spanOf(timing, ref);
    auto add = [&](int64_t begin, int64_t end,
                   std::optional<int32_t> pipeline) {
      if (begin < end)
        result.work[ref.worker].push_back(
            {{begin, end}, action.stage, pipeline});
    };
    add(span.send.end, span.update, std::nullopt);
    add(span.update, span.free, action.pipeline);
    result.ends[ref.worker] = span.free;
  });
  return result;
}

SyncAndUpdate syncAndUpdateOf(const Problem &problem, const Schedule &schedule,
                              const Timing &timing) {
  return stepsOverlap(problem.updates)
             ? betweenActions(problem, schedule, timing)
             : afterActions(problem, schedule, timing);
}

} // namespace chimera::schedule
