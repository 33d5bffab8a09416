//===- StepTime.cpp - The time of a whole step ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/StepTime.h"

#include "compiler/schedule/Bounds.h"
#include "compiler/schedule/CoreGroups.h"
#include "compiler/schedule/SharedCores.h"
#include "compiler/schedule/Simulate.h"
#include "compiler/schedule/SteadyState.h"

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

/// The mean time of a step, over some steps with a flush on workers that share
/// cores. The first steps of a run are left out. The last step is left out too:
/// in the last step, workers that are done leave their cores to the others. In
/// other steps they begin the next step instead.
static double sharedPeriodOf(const Problem &problem, const Schedule &schedule,
                             const SyncAndUpdateOrder &order) {
  constexpr int32_t kSteps = 12, kFirst = 4, kLast = kSteps - 2;
  const std::vector<std::vector<int64_t>> ends =
      simulateSharedSteps(problem, schedule, order, kSteps);
  auto lastOf = [&](int32_t step) { return std::ranges::max(ends[step]); };
  constexpr int64_t kMost = int64_t{1}
                            << 61; // simulateSharedSteps limits times to 2^61
  if (lastOf(kLast) >= kMost)
    return static_cast<double>(kMost);
  return static_cast<double>(lastOf(kLast) - lastOf(kFirst)) / (kLast - kFirst);
}

/// Simulates steps with a flush, one after another. The problems that are
/// passed to its functions may differ from each other only in their all-reduces
/// and updates.
class FlushedSteps {
public:
  FlushedSteps(const Problem &problem, const Schedule &schedule)
      : schedule(schedule) {
    if (sharesCores(problem)) {
      reduces = gradientReduces(problem, schedule, simulate(problem, schedule));
    } else {
      simulation = std::make_unique<StepSimulation>(problem, schedule);
      reduces = gradientReduces(problem, schedule, simulation->fromZero());
    }
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
    return std::max(simulatedPeriod(problem, reduces),
                    minStepTimeOf(problem, schedule));
  }

  /// The mean time from one simulated step to the next. Each worker begins a
  /// step when it has ended its previous step.
  double simulatedPeriod(const Problem &problem,
                         const std::vector<GradientReduce> &reduces) {
    const SyncAndUpdateOrder order =
        syncAndUpdateOrderOf(problem, schedule, reduces);
    if (!simulation)
      return sharedPeriodOf(problem, schedule, order);
    constexpr size_t kMostSteps = 48;
    const std::vector<int64_t> endsFromZero =
        syncAndUpdateAfter(problem, order, simulation->fromZero()).ends;
    // For each step, the begin of each worker, relative to the first worker
    // that began it. `firsts` has the time at which that first worker began.
    std::vector<std::vector<int64_t>> begins = {
        std::vector<int64_t>(schedule.workers.size())};
    std::vector<int64_t> firsts = {0};
    auto mean = [&](size_t from) {
      return static_cast<double>(firsts.back() - firsts[from]) /
             static_cast<double>(firsts.size() - 1 - from);
    };
    while (firsts.size() <= kMostSteps) {
      std::vector<int64_t> ends;
      if (auto delay = simulation->delayOf(begins.back())) {
        for (int64_t end : endsFromZero)
          ends.push_back(saturatingAdd(end, *delay));
      } else {
        ends =
            syncAndUpdateAfter(problem, order, simulation->run(begins.back()))
                .ends;
      }
      auto [first, last] = std::ranges::minmax(ends);
      constexpr int64_t kMost = int64_t{1} << 61; // later times could overflow
      if (last > kMost)
        return static_cast<double>(last);
      for (int64_t &end : ends)
        end -= first;
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

  const Schedule &schedule;
  std::unique_ptr<StepSimulation> simulation; ///< null if workers share cores
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
