//===- SteadyState.cpp - The steady state of steps that overlap -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/SteadyState.h"

#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"

#include <algorithm>
#include <optional>

namespace chimera::schedule {

namespace {

/// The starts of the actions of all bodies in a run of several steps.
class BodyStarts {
public:
  BodyStarts(const Problem &problem, const Schedule &schedule, int32_t steps)
      : schedule(schedule), bodies(steps - 1) {
    Problem longer = problem;
    longer.steps = steps;
    starts = simulate(longer, unrollSteps(problem, schedule, steps),
                      {.hasTotals = false})
                 .starts;
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
