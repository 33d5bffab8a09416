//===- StepTime.cpp - What a whole step takes -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/StepTime.h"

#include "compiler/schedule/Saturating.h"
#include "compiler/schedule/SharedCores.h"
#include "compiler/schedule/Steps.h"

#include <algorithm>

namespace chimera::schedule {

/// What the actions and updates of the busiest worker take in a step.
static double busiest(const Problem &problem, const Schedule &schedule) {
  std::vector<int64_t> busy(schedule.workers.size());
  for (size_t w = 0; w < busy.size(); ++w)
    for (const Action &action : schedule.workers[w])
      busy[w] = saturatingAdd(busy[w], problem.cost(action));
  for (const Pipeline &pipeline : problem.pipelines)
    for (size_t s = 0; s < pipeline.workers.size(); ++s) {
      int64_t &worker = busy[pipeline.workers[s]];
      worker = saturatingAdd(worker, problem.stages[s].update);
    }
  return static_cast<double>(std::ranges::max(busy));
}

/// The mean time of the later ones of some steps with a flush.
static double sharedPeriodOf(const Problem &problem, const Schedule &schedule,
                             const TailOrder &order) {
  constexpr int32_t kSteps = 12;
  const std::vector<std::vector<int64_t>> ends =
      simulateSharedSteps(problem, schedule, order, kSteps);
  auto lastOf = [&](int32_t step) { return std::ranges::max(ends[step]); };
  constexpr int64_t kMost = int64_t{1} << 61; // later ends are not told apart
  if (lastOf(kSteps - 1) >= kMost)
    return static_cast<double>(kMost);
  return static_cast<double>(lastOf(kSteps - 1) - lastOf(kSteps / 2 - 1)) /
         (kSteps / 2);
}

/// The mean time from a step with a flush to the next: each worker begins one
/// where it ended the one before.
static double periodOf(const Problem &problem, const Schedule &schedule,
                       const std::vector<StageReduce> &reduces) {
  const TailOrder order = tailOrderOf(problem, schedule, reduces);
  if (sharesCores(problem))
    return sharedPeriodOf(problem, schedule, order);
  constexpr size_t kMostSteps = 48;
  // When each worker began each step, counted from the first that did; when
  // that was.
  std::vector<std::vector<int64_t>> begins = {
      std::vector<int64_t>(schedule.workers.size())};
  std::vector<int64_t> firsts = {0};
  auto mean = [&](size_t from) {
    return static_cast<double>(firsts.back() - firsts[from]) /
           static_cast<double>(firsts.size() - 1 - from);
  };
  while (firsts.size() <= kMostSteps) {
    Timing timing = simulate(problem, schedule, begins.back());
    std::vector<int64_t> ends = tailOf(problem, order, timing).ends;
    auto [first, last] = std::ranges::minmax(ends);
    constexpr int64_t kMost = int64_t{1} << 61; // more would overflow
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
  // So far workers may have drifted apart, those with less to do ahead.
  return std::max(mean(firsts.size() / 2), busiest(problem, schedule));
}

double stepPeriod(const Problem &problem, const Schedule &schedule) {
  if (stepsOverlap(problem.updates))
    return steadyState(problem, schedule).period;
  std::vector<int64_t> begins(schedule.workers.size());
  Timing timing = simulate(problem, schedule, begins);
  return periodOf(problem, schedule, stageReduces(problem, schedule, timing));
}

StepTime stepTime(const Problem &problem, const Schedule &schedule) {
  Problem reducing = problem; // whose updates take no time
  for (StageCost &cost : reducing.stages)
    cost.update = 0;
  Problem acting = reducing; // nor do all-reduces
  for (LinkClass *links : acting.classes()) {
    links->allReduceMessage = MessageTime();
    links->allReduceEnds = {};
  }
  StepTime time;
  if (stepsOverlap(problem.updates)) {
    time.actions = steadyState(acting, schedule).period;
    time.allReduce = steadyState(reducing, schedule).period - time.actions;
    time.total = steadyState(problem, schedule).period;
  } else {
    std::vector<StageReduce> reduces =
        stageReduces(problem, schedule, simulate(problem, schedule));
    time.actions = periodOf(acting, schedule, {});
    time.allReduce = periodOf(reducing, schedule, reduces) - time.actions;
    time.total = periodOf(problem, schedule, reduces);
  }
  time.update = time.total - time.actions - time.allReduce;
  return time;
}

static bool allReducesTakeTime(const LinkClass *links) {
  auto takesTime = [](const MessageTime &time) {
    return time.alpha > 0 || time.beta > 0;
  };
  return takesTime(links->allReduceEnds) ||
         (links->allReduceMessage
              ? takesTime(*links->allReduceMessage)
              : std::ranges::any_of(links->link.times(), takesTime));
}

bool hasTail(const Problem &problem) {
  auto takesTime = [](const StageCost &cost) { return cost.update > 0; };
  if (std::ranges::any_of(problem.stages, takesTime))
    return true;
  bool hasReplicas = problem.width > 1 || problem.pipelines.size() > 1;
  return hasReplicas &&
         std::ranges::any_of(problem.classes(), allReducesTakeTime);
}

} // namespace chimera::schedule
