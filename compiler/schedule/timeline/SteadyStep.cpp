//===- SteadyStep.cpp - One step of many that overlap ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SteadyStep.h"

#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/SteadyState.h"

#include <algorithm>
#include <limits>

namespace chimera::schedule {

namespace {

/// Simulates many steps and extracts the last body of each worker.
class BodyExtractor {
public:
  BodyExtractor(const Problem &problem, const Schedule &schedule)
      : schedule(schedule), steps(steadyState(problem, schedule).steps),
        run(unrollSteps(problem, schedule, steps)) {
    Problem longer = problem;
    longer.steps = steps;
    timing = simulate(longer, run);
    syncAndUpdate = syncAndUpdateOf(longer, run, timing);
    occupations = messageOccupationsOf(longer, run, timing);
  }

  SteadyStep extract() {
    for (size_t w = 0; w < run.workers.size(); ++w)
      cutWorker(w);
    beginAtZero();
    for (int64_t end : step.syncAndUpdate.ends)
      step.timing.makespan = std::max(step.timing.makespan, end);
    return std::move(step);
  }

private:
  void cutWorker(size_t w) {
    auto [begin, end] = schedule.bodies[w];
    size_t count = end - begin, first = begin + (steps - 2) * count;
    const std::vector<int64_t> &starts = timing.starts[w];
    const std::vector<Action> &actions = schedule.workers[w];
    step.schedule.workers.emplace_back(actions.begin() + begin,
                                       actions.begin() + end);
    for (auto times : {&Timing::starts, &Timing::ends}) {
      const std::vector<int64_t> &all = (timing.*times)[w];
      (step.timing.*times)
          .emplace_back(all.begin() + first, all.begin() + first + count);
    }
    int64_t &begins = step.begins.emplace_back();
    int64_t &actionEnd = step.syncAndUpdate.actionEnds.emplace_back();
    int64_t &ends = step.syncAndUpdate.ends.emplace_back();
    std::vector<SyncAndUpdate::Work> &works =
        step.syncAndUpdate.work.emplace_back();
    std::vector<Occupation> &row = step.occupations.emplace_back();
    if (count == 0)
      return;
    begins = timing.ends[w][first - 1];
    actionEnd = ends = timing.ends[w][first + count - 1];
    int64_t next = first + count < starts.size()
                       ? starts[first + count]
                       : std::numeric_limits<int64_t>::max();
    for (const SyncAndUpdate::Work &work : syncAndUpdate.work[w])
      if (work.begin < starts[first]) {
        begins = std::max(begins, work.end);
      } else if (work.begin < next) {
        works.push_back(work);
        ends = std::max(ends, work.end);
      }
    for (Occupation occupation : occupations[w]) {
      occupation.index -= static_cast<int32_t>(first);
      if (occupation.index >= 0 && occupation.end <= ends)
        row.push_back(occupation);
    }
  }

  void beginAtZero() {
    int64_t origin = std::numeric_limits<int64_t>::max();
    for (size_t w = 0; w < step.begins.size(); ++w)
      if (!step.timing.starts[w].empty())
        origin = std::min(origin, step.begins[w]);
    auto shift = [&](Span &span) {
      span.begin -= origin;
      span.end -= origin;
    };
    for (size_t w = 0; w < step.begins.size(); ++w) {
      if (step.timing.starts[w].empty())
        continue;
      for (int64_t *time : {&step.begins[w], &step.syncAndUpdate.actionEnds[w],
                            &step.syncAndUpdate.ends[w]})
        *time -= origin;
      for (std::vector<int64_t> *times :
           {&step.timing.starts[w], &step.timing.ends[w]})
        for (int64_t &time : *times)
          time -= origin;
      std::ranges::for_each(step.syncAndUpdate.work[w], shift);
      std::ranges::for_each(step.occupations[w], shift);
    }
  }

  const Schedule &schedule;
  int32_t steps;
  Schedule run; ///< of `steps` steps
  Timing timing;
  SyncAndUpdate syncAndUpdate;
  Occupations occupations;
  SteadyStep step;
};

} // namespace

SteadyStep steadyStep(const Problem &problem, const Schedule &schedule) {
  return BodyExtractor(problem, schedule).extract();
}

Timeline timelineOf(const Timeline &timeline, const SteadyStep &step) {
  return {.name = timeline.name,
          .title = timeline.title,
          .problem = timeline.problem,
          .schedule = step.schedule,
          .timing = step.timing,
          .slots = timeline.slots,
          .scale = timeline.scale,
          .lineWidth = timeline.lineWidth,
          .picture = timeline.picture,
          .syncAndUpdate = &step.syncAndUpdate,
          .step = timeline.step,
          .occupations = &step.occupations,
          .isPart = true};
}

} // namespace chimera::schedule
