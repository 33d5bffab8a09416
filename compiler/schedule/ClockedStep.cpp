//===- ClockedStep.cpp - A step in nanoseconds ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/ClockedStep.h"

#include <algorithm>
#include <cmath>

namespace chimera::schedule {

__extension__ using Wide = __int128;

/// Whole, for each unit that is a duration.
static int64_t nanosecondsOf(const TimeUnit &unit) {
  return std::llround(unit.microseconds * 1000);
}

int64_t ClockedStep::end() const {
  return std::max(timing.makespan, tail.end());
}

int64_t ClockedStep::length() const {
  int64_t length = 0;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    length = std::max(length, end(w) - begin(w));
  return length;
}

int64_t ClockedStep::busy(size_t worker) const {
  int64_t time = timing.busy[worker];
  for (const Tail::Work &work : tail.work[worker])
    if (work.isUpdate())
      time += work.end - work.begin;
  return time;
}

int64_t ClockedStep::waitBefore(size_t worker, size_t index) const {
  const std::vector<int64_t> &starts = timing.starts[worker];
  int64_t before = index == 0
                       ? begin(worker)
                       : starts[index - 1] + durations[worker][index - 1];
  return (index == starts.size() ? tail.ends[worker] : starts[index]) - before;
}

void ClockedStep::complete() {
  size_t workers = timing.starts.size();
  tail.work.resize(workers);
  tail.computed.assign(workers, 0);
  timing.busy.assign(workers, 0);
  timing.makespan = 0;
  timing.ends = timing.starts;
  for (size_t w = 0; w < workers; ++w) {
    for (size_t i = 0; i < durations[w].size(); ++i)
      timing.ends[w][i] += durations[w][i];
    for (int64_t duration : durations[w])
      timing.busy[w] += duration;
    if (!durations[w].empty())
      tail.computed[w] = timing.starts[w].back() + durations[w].back();
    timing.makespan = std::max(timing.makespan, tail.computed[w]);
  }
  tail.ends = tail.computed;
  for (size_t w = 0; w < workers; ++w)
    for (const Tail::Work &work : tail.work[w])
      tail.ends[w] = std::max(tail.ends[w], work.end);
  timing.idle.clear();
  for (int64_t busy : timing.busy)
    timing.idle.push_back(timing.makespan - busy);
}

std::optional<ClockedStep> clocked(const Timeline &timeline,
                                   std::span<const int64_t> begins) {
  const Wide unit = nanosecondsOf(*timeline.scale.unit);
  const int64_t perUnit = timeline.scale.perUnit;
  auto nanoseconds = [&](int64_t ticks) {
    return static_cast<int64_t>((unit * ticks + perUnit / 2) / perUnit);
  };
  if (unit * timeline.end() / perUnit > kMostNanoseconds)
    return std::nullopt;
  ClockedStep step;
  for (int64_t begin : begins)
    step.begins.push_back(nanoseconds(begin));
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w) {
    std::vector<int64_t> &starts = step.timing.starts.emplace_back();
    std::vector<int64_t> &durations = step.durations.emplace_back();
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i) {
      int64_t start = timeline.timing.starts[w][i];
      starts.push_back(nanoseconds(start));
      // The difference of two rounded times: so no two actions overlap.
      durations.push_back(nanoseconds(start + timeline.duration(w, i)) -
                          starts.back());
    }
  }
  auto convert = [&](Tail::Span &span) {
    span.begin = nanoseconds(span.begin);
    span.end = nanoseconds(span.end);
  };
  if (timeline.occupations) {
    step.occupations = *timeline.occupations;
    for (std::vector<Occupation> &row : step.occupations)
      std::ranges::for_each(row, convert);
  }
  if (timeline.tail) {
    step.tail = *timeline.tail;
    std::ranges::for_each(step.tail.sums, convert);
    for (std::vector<Tail::Work> &work : step.tail.work)
      std::ranges::for_each(work, convert);
  }
  step.complete();
  return step;
}

Timeline timelineOf(const Timeline &timeline, const ClockedStep &step) {
  return {.name = timeline.name,
          .title = timeline.title,
          .problem = timeline.problem,
          .schedule = timeline.schedule,
          .timing = step.timing,
          .scale = {timeline.scale.unit, nanosecondsOf(*timeline.scale.unit)},
          .tail = &step.tail,
          .durations = &step.durations,
          .occupations =
              step.occupations.empty() ? nullptr : &step.occupations};
}

} // namespace chimera::schedule
