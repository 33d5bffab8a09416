//===- StepTime.cpp - The time of a whole step ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/StepTime.h"

#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulation.h"
#include "compiler/schedule/simulate/SteadyState.h"

#include <algorithm>

namespace chimera::schedule {

/// A lower bound of the time of a step with a flush, from the work of the
/// workers and the messages on the links.
static double minStepTimeOf(const Problem &problem, const Schedule &schedule) {
  std::vector<int64_t> busy(schedule.workers.size());
  for (size_t w = 0; w < busy.size(); ++w)
    for (const Action &action : schedule.workers[w])
      busy[w] = saturatingAdd(busy[w], problem.cost(action));
  for (const Pipeline &pipeline : problem.pipelines)
    for (size_t s = 0; s < pipeline.workers.size(); ++s) {
      int64_t &worker = busy[pipeline.workers[s]];
      worker = saturatingAdd(worker, problem.stages[s].update);
    }
  return std::max(minStepTime(problem, busy),
                  static_cast<double>(busiestChannel(problem)));
}

constexpr int64_t kMostTicks = int64_t{1} << 61; // later times could overflow

/// Simulates steps with a flush, one after another. The problems that are
/// passed to its functions may differ from each other only in their all-reduces
/// and updates.
class FlushedSteps {
public:
  FlushedSteps(const Problem &problem, const Schedule &schedule)
      : isShared(sharesCores(problem)), graph(problem, schedule),
        simulation(graph) {
    if (isShared) {
      alone = Simulation<SharedCores>(graph).run();
    } else {
      simulation.run();
      alone = simulation.takeTiming();
    }
    reduces = gradientReduces(problem, schedule, alone);
  }

  double period(const Problem &problem) { return period(problem, reduces); }
  /// The period without all-reduces and updates.
  double periodOfActions(const Problem &problem) { return period(problem, {}); }

private:
  /// The mean time from one step to the next, at least the lower bound of
  /// minStepTimeOf. The simulated mean may be below that bound, because
  /// simulated messages overlap and the mean is over a few steps.
  double period(const Problem &problem,
                const std::vector<GradientReduce> &reduces) {
    const SyncAndUpdateOrder order =
        syncAndUpdateOrderOf(problem, graph.schedule, reduces);
    return std::max(isShared ? sharedPeriod(order) : ownPeriod(order),
                    minStepTimeOf(problem, graph.schedule));
  }

  /// The mean over some steps on workers that share cores. The first steps of a
  /// run are left out. The last step is left out too: in the last step, workers
  /// that are done leave their cores to the others. In other steps they begin
  /// the next step instead.
  double sharedPeriod(const SyncAndUpdateOrder &order) const {
    constexpr int32_t kSteps = 12, kFirst = 4, kLast = kSteps - 2;
    Simulation<SharedCores> steps(graph, {.order = &order, .steps = kSteps});
    steps.run();
    int64_t first = std::ranges::max(steps.stepEnds()[kFirst]),
            last = std::ranges::max(steps.stepEnds()[kLast]);
    if (last >= kMostTicks)
      return static_cast<double>(kMostTicks);
    return static_cast<double>(last - first) / (kLast - kFirst);
  }

  /// The mean if each worker has a core of its own. Each worker begins a step
  /// when it has ended its previous step. Simulates until the begins of the
  /// workers, relative to each other, repeat, or for some dozens of steps.
  double ownPeriod(const SyncAndUpdateOrder &order) {
    constexpr size_t kMostSteps = 48;
    Simulation<OwnCores> after(graph, {.order = &order});
    const std::vector<int64_t> endsAlone = after.runAfter(alone).ends;
    // For each step, the begin of each worker, relative to the first worker
    // that began it. `firsts` has the time at which that first worker began.
    std::vector<std::vector<int64_t>> begins = {
        std::vector<int64_t>(graph.schedule.workers.size())};
    std::vector<int64_t> firsts = {0};
    auto mean = [&](size_t from) {
      return static_cast<double>(firsts.back() - firsts[from]) /
             static_cast<double>(firsts.size() - 1 - from);
    };
    while (firsts.size() <= kMostSteps) {
      std::vector<int64_t> ends;
      if (auto delay = delayOf(begins.back())) {
        for (int64_t end : endsAlone)
          ends.push_back(saturatingAdd(end, *delay));
      } else {
        ends = after.runAfter(simulation.run(begins.back())).ends;
      }
      if (int64_t last = std::ranges::max(ends); last > kMostTicks)
        return static_cast<double>(last);
      const int64_t first = firstOf(ends);
      for (int64_t &end : ends)
        end = std::max<int64_t>(end - first, 0);
      firsts.push_back(saturatingAdd(firsts.back(), first));
      auto same = std::ranges::find(begins, ends);
      if (same != begins.end())
        return mean(same - begins.begin());
      begins.push_back(std::move(ends));
    }
    // Average only over the second half. In the first half, workers with less
    // work may still be getting ahead of the others.
    return mean(firsts.size() / 2);
  }

  /// The end of the first worker that ended a step. Workers without actions
  /// have no part in steps.
  int64_t firstOf(std::span<const int64_t> ends) const {
    int64_t first = std::ranges::max(ends);
    for (size_t w = 0; w < ends.size(); ++w)
      if (!graph.schedule.workers[w].empty())
        first = std::min(first, ends[w]);
    return first;
  }

  /// The delay of all actions relative to `alone` if workers begin at `begins`,
  /// or nothing if the delays of actions differ. All delays are equal under two
  /// conditions. First, all workers whose first action depends on no other
  /// worker begin with the same delay. Second, every other worker begins early
  /// enough for its first action to start with that delay.
  std::optional<int64_t> delayOf(std::span<const int64_t> begins) const {
    std::optional<int64_t> delay;
    int64_t held = 0; // largest delay of a worker's begin
    for (size_t w = 0; w < begins.size(); ++w) {
      if (graph.schedule.workers[w].empty())
        continue;
      const ActionRule &rule =
          graph.rules.ruleOf(graph.schedule.workers[w].front());
      const int64_t late = begins[w] - (alone.starts[w].front() - rule.receive);
      held = std::max(held, late);
      if (rule.otherStage != 0)
        continue;
      if (delay.value_or(late) != late)
        return std::nullopt;
      delay = late;
    }
    return delay && held <= *delay ? delay : std::nullopt;
  }

  bool isShared;
  StepGraph graph;
  Simulation<OwnCores> simulation; ///< not used if cores are shared
  Timing alone; ///< of the actions of one step, if all workers begin at 0
  std::vector<GradientReduce> reduces;
};

StepPeriods::StepPeriods(const Problem &of, const Schedule &schedule)
    : schedule(schedule), problem(of) {
  if (!stepsOverlap(problem.updates))
    steps = std::make_unique<FlushedSteps>(problem, schedule);
}

StepPeriods::~StepPeriods() = default;

double StepPeriods::periodWith(AllReducePolicy policy) {
  problem.policy = policy;
  return steps ? steps->period(problem) : steadyState(problem, schedule).period;
}

StepTime stepTime(const Problem &problem, const Schedule &schedule) {
  Problem reducing = problem; // `problem`, but updates take no time
  for (StageCost &cost : reducing.stages)
    cost.update = 0;
  Problem acting = reducing; // `reducing`, but all-reduces take no time
  for (LinkClass *links : acting.classes()) {
    links->allReduceMessage = MessageTime();
    links->allReduceOverhead = {};
  }
  StepTime time;
  if (stepsOverlap(problem.updates)) {
    time.actions = steadyState(acting, schedule).period;
    time.allReduce = steadyState(reducing, schedule).period - time.actions;
    time.total = steadyState(problem, schedule).period;
  } else {
    FlushedSteps steps(problem, schedule);
    time.actions = steps.periodOfActions(acting);
    time.allReduce = steps.period(reducing) - time.actions;
    time.total = steps.period(problem);
  }
  time.update = time.total - time.actions - time.allReduce;
  return time;
}

} // namespace chimera::schedule
