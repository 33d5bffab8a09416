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
#include "compiler/schedule/timeline/Occupations.h"

#include <algorithm>
#include <cmath>

namespace chimera::schedule {

int64_t Tail::end() const { return ends.empty() ? 0 : std::ranges::max(ends); }

namespace {

/// Makes a tail: all-reduces first, which updates do not hold up.
class TailMaker {
public:
  TailMaker(const Problem &problem, const Schedule &schedule,
            const Timing &timing)
      : problem(problem), schedule(schedule), timing(timing),
        slowdown(slowdowns(problem)) {
    for (const std::vector<int64_t> &ends : timing.ends)
      tail.computed.push_back(ends.empty() ? 0 : ends.back());
    tail.ends = tail.computed;
    tail.work.resize(tail.ends.size());
  }

  Tail run(const std::vector<StageReduce> &reduces) {
    // When each worker is done with the all-reduces before.
    std::vector<int64_t> free(schedule.workers.size());
    for (const StageReduce &reduce : reduces)
      tail.allReduces.push_back(allReduceOf(reduce, free));
    waitAndUpdate();
    return std::move(tail);
  }

private:
  Tail::AllReduce allReduceOf(const StageReduce &reduce,
                              std::vector<int64_t> &free) const {
    Tail::AllReduce allReduce;
    allReduce.stage = reduce.stage;
    allReduce.workers = reduce.workers();
    for (const StageReduce::Part &part : reduce.parts) {
      bool now = problem.policy == AllReducePolicy::Eager ||
                 (problem.policy == AllReducePolicy::EagerOpt && part.isIdle);
      int64_t started = now ? timing.ends[part.worker][part.last]
                            : tail.computed[part.worker];
      allReduce.begin = std::max({allReduce.begin, free[part.worker], started});
    }
    allReduce.end = saturatingAdd(allReduce.begin,
                                  allReduceTime(problem, allReduce.workers,
                                                reduce.bytes, reduce.buckets));
    for (int32_t worker : allReduce.workers)
      free[worker] = allReduce.end;
    return allReduce;
  }

  /// Each worker waits for its all-reduces in their order, and updates the
  /// replicas of a stage when it has all of its own.
  void waitAndUpdate() {
    auto last = static_cast<int32_t>(problem.stages.size()) - 1;
    std::vector<int32_t> missing(problem.stages.size(), 1); // all-reduces
    if (problem.tiedBytes > 0)
      ++missing.front(), ++missing.back();
    for (const Tail::AllReduce &allReduce : tail.allReduces) {
      for (int32_t worker : allReduce.workers)
        spend(worker, allReduce.end, allReduce.stage, std::nullopt);
      std::vector<int32_t> stages = {0, last};
      if (allReduce.stage)
        stages = {*allReduce.stage};
      for (int32_t stage : stages)
        if (--missing[stage] == 0)
          update(stage);
    }
  }

  void update(int32_t stage) {
    for (size_t p = 0; p < problem.pipelines.size(); ++p) {
      int32_t worker = problem.pipelines[p].workers[stage];
      // All workers update at about the same time.
      auto time = static_cast<int64_t>(
          std::ceil(static_cast<double>(problem.stages[stage].update) *
                    slowdown[worker]));
      spend(worker, saturatingAdd(tail.ends[worker], time), stage,
            static_cast<int32_t>(p));
    }
  }

  /// The worker is at it until `end`, if it is not done before.
  void spend(int32_t worker, int64_t end, std::optional<int32_t> stage,
             std::optional<int32_t> pipeline) {
    int64_t &free = tail.ends[worker];
    if (end <= free)
      return;
    Tail::Work work;
    work.begin = free;
    work.end = free = end;
    work.stage = stage;
    work.pipeline = pipeline;
    tail.work[worker].push_back(work);
  }

  const Problem &problem;
  const Schedule &schedule;
  const Timing &timing;
  std::vector<double> slowdown; ///< of each worker
  Tail tail;
};

} // namespace

Tail tailOf(const Problem &problem, const Schedule &schedule,
            const Timing &timing, const std::vector<StageReduce> &reduces) {
  return TailMaker(problem, schedule, timing).run(reduces);
}

Tail tailAmong(const Problem &problem, const Schedule &schedule,
               const Timing &timing) {
  Tail tail;
  std::vector<std::vector<int64_t>> behind = updatesBehind(problem, schedule);
  Occupations occupations = occupationsOf(problem, schedule, timing);
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const std::vector<Action> &actions = schedule.workers[w];
    std::vector<Tail::Work> &works = tail.work.emplace_back();
    std::vector<int64_t> free; // when what each action sends is sent
    for (size_t i = 0; i < actions.size(); ++i)
      free.push_back(timing.starts[w][i] + problem.cost(actions[i]));
    tail.computed.push_back(free.empty() ? 0 : free.back());
    for (const Occupation &occupation : occupations[w])
      if (occupation.isSend)
        free[occupation.index] = occupation.end;
    int64_t &end = tail.ends.emplace_back(tail.computed.back());
    for (size_t i = 0; i < actions.size() && !behind.empty(); ++i) {
      const Action &action = actions[i];
      Tail::Work work;
      work.stage = action.stage;
      work.begin = free[i];
      end = free[i] + behind[w][i];
      int64_t update =
          std::min(problem.stages[action.stage].update, behind[w][i]);
      work.end = end - update;
      if (work.end > work.begin)
        works.push_back(work);
      work.begin = work.end;
      work.end = end;
      work.pipeline = action.pipeline;
      if (update > 0)
        works.push_back(work);
    }
  }
  return tail;
}

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

/// The mean time from a step with a flush to the next: each worker begins one
/// where it ended the one before.
static double periodOf(const Problem &problem, const Schedule &schedule,
                       const std::vector<StageReduce> &reduces) {
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
    std::vector<int64_t> ends = tailOf(problem, schedule, timing, reduces).ends;
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
  acting.width = 1;
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
