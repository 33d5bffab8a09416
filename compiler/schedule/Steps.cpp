//===- Steps.cpp - Steps that overlap -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Steps.h"

#include "compiler/schedule/Bounds.h"
#include "compiler/schedule/SharedCores.h"
#include "compiler/schedule/StepTime.h"

#include <algorithm>
#include <map>

namespace chimera::schedule {

int64_t weightVersion(const Problem &problem, int32_t stage,
                      int64_t microBatch) {
  switch (problem.updates) {
  case Updates::Flush:
    return 0;
  case Updates::EachMicroBatch:
    return std::max<int64_t>(0,
                             microBatch + 1 - weightVersions(problem, stage));
  case Updates::EachStep:
    return std::max<int64_t>(0, microBatch / problem.microBatches() - 1);
  }
  return 0;
}

int32_t weightVersions(const Problem &problem, int32_t stage) {
  switch (problem.updates) {
  case Updates::Flush:
    return 1;
  case Updates::EachMicroBatch:
    return static_cast<int32_t>(problem.stages.size()) - stage;
  case Updates::EachStep:
    return 2;
  }
  return 1;
}

Schedule unrollSteps(const Problem &problem, const Schedule &schedule,
                     int32_t steps) {
  Schedule result;
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const std::vector<Action> &actions = schedule.workers[w];
    auto [begin, end] = schedule.bodies[w];
    std::vector<Action> &out = result.workers.emplace_back();
    out.reserve(actions.size() +
                static_cast<size_t>(steps - 2) * (end - begin));
    auto append = [&](int32_t from, int32_t to, int32_t shift) {
      for (int32_t i = from; i < to; ++i) {
        out.push_back(actions[i]);
        out.back().microBatch += shift * problem.microBatches();
      }
    };
    append(0, begin, 0);
    for (int32_t step = 0; step + 1 < steps; ++step)
      append(begin, end, step);
    append(end, static_cast<int32_t>(actions.size()), steps - 2);
  }
  if (steps == 2)
    result.bodies = schedule.bodies;
  return result;
}

std::vector<std::vector<UpdateAfter>> updatesAfter(const Problem &problem,
                                                   const Schedule &schedule) {
  if (!stepsOverlap(problem.updates) || !hasSyncAndUpdate(problem))
    return {};
  auto updateOf = [&](int32_t worker, int32_t stage) -> UpdateAfter {
    int64_t bytes = problem.bytesOf(stage).gradient();
    int64_t buckets = bucketsOf(bytes, problem.bucketBytes).count;
    return {allReduceTime(problem, std::array{worker}, bytes, buckets),
            problem.stages[stage].update};
  };
  int32_t each =
      problem.updates == Updates::EachStep ? problem.microBatches() : 1;
  std::vector<std::vector<UpdateAfter>> updates;
  for (const std::vector<Action> &actions : schedule.workers) {
    auto worker = static_cast<int32_t>(updates.size());
    std::vector<UpdateAfter> &row = updates.emplace_back(actions.size());
    // The last action that adds to each gradient, by stage and number of the
    // update.
    std::map<std::pair<int32_t, int32_t>, size_t> last;
    for (size_t i = 0; i < actions.size(); ++i)
      if (addsToGradient(actions[i].kind))
        last[{actions[i].stage, actions[i].microBatch / each}] = i;
    for (auto [update, i] : last)
      row[i] = updateOf(worker, update.first);
  }
  return updates;
}

namespace {

/// The starts of the actions of all bodies in a run of several steps.
class BodyStarts {
public:
  BodyStarts(const Problem &problem, const Schedule &schedule, int32_t steps)
      : schedule(schedule), bodies(steps - 1) {
    Problem longer = problem;
    longer.steps = steps;
    starts = simulate(longer, unrollSteps(problem, schedule, steps)).starts;
  }

  /// Time from the first action of body `from` to the first action of body
  /// `to`.
  int64_t between(int32_t from, int32_t to) const {
    return at(0, 0, to) - at(0, 0, from);
  }
  /// True if all actions of body `to` start equally long after the same actions
  /// of body `from`. All later bodies then repeat as well, because an action of
  /// a body depends only on this body and the previous one.
  bool alike(int32_t from, int32_t to) const {
    for (size_t w = 0; w < starts.size(); ++w)
      for (int32_t i = 0; i < schedule.bodies[w].end - schedule.bodies[w].begin;
           ++i)
        if (at(w, i, to) - at(w, i, from) != between(from, to))
          return false;
    return true;
  }

  /// The steady time per body: the mean time between the starts of consecutive
  /// bodies. Looks for the latest body that is `alike` to the last body, and
  /// averages over the bodies between the two. None if there is no such body.
  std::optional<double> period() const {
    int32_t last = bodies - 1;
    for (int32_t count = 1; count <= last; ++count)
      if (alike(last - count, last))
        return static_cast<double>(between(last - count, last)) / count;
    return std::nullopt;
  }
  double meanPeriod() const {
    int32_t last = bodies - 1;
    return static_cast<double>(between(last / 2, last)) / (last - last / 2);
  }

private:
  int64_t at(size_t worker, int32_t index, int32_t body) const {
    auto [begin, end] = schedule.bodies[worker];
    return starts[worker]
                 [begin + static_cast<size_t>(body) * (end - begin) + index];
  }

  const Schedule &schedule;
  int32_t bodies;
  std::vector<std::vector<int64_t>> starts;
};

} // namespace

SteadyState steadyState(const Problem &problem, const Schedule &schedule) {
  std::vector<int64_t> busy;
  int64_t actions = 0, allBusy = 0;
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    auto [begin, end] = schedule.bodies[w];
    actions += end - begin;
    busy.push_back(0);
    for (int32_t i = begin; i < end; ++i)
      busy.back() += problem.cost(schedule.workers[w][i]);
    allBusy += busy.back();
  }
  // Each try simulates twice as many steps as the try before, from step 0 on.
  // So all tries together cost at most twice as much as the last one.
  constexpr int64_t kMostActions = int64_t{1} << 23;
  for (int32_t steps = 4;; steps *= 2) {
    BodyStarts starts(problem, schedule, steps);
    std::optional<double> period = starts.period();
    if (!period && 2 * steps * actions > kMostActions)
      period = starts.meanPeriod();
    if (!period)
      continue;
    // The simulated period may be less than the workers or links need, for
    // three reasons: starts are rounded if workers share cores, a mean may be
    // over unequal steps, and simulated messages overlap more than a link
    // allows. So the period is raised to the lower bounds.
    period = std::max({*period, minStepTime(problem, busy),
                       static_cast<double>(busiestChannel(problem))});
    return {*period,
            1 - static_cast<double>(allBusy) /
                    (*period * static_cast<double>(schedule.workers.size())),
            steps};
  }
}

} // namespace chimera::schedule
