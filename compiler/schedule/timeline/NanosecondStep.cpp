//===- NanosecondStep.cpp - A step in nanoseconds -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/NanosecondStep.h"

#include <algorithm>
#include <cmath>

namespace chimera::schedule {

__extension__ using Wide = __int128;

/// The number of nanoseconds in one unit, a whole number for every unit that is
/// a duration.
static int64_t nanosecondsOf(const TimeUnit &unit) {
  return std::llround(unit.microseconds * 1000);
}

int64_t NanosecondStep::end() const {
  return std::max(timing.makespan, syncAndUpdate.end());
}

int64_t NanosecondStep::length() const {
  int64_t length = 0;
  for (size_t w = 0; w < timing.starts.size(); ++w)
    length = std::max(length, end(w) - begin(w));
  return length;
}

int64_t NanosecondStep::busy(size_t worker) const {
  int64_t time = timing.busy[worker];
  for (const SyncAndUpdate::Work &work : syncAndUpdate.work[worker])
    if (work.isUpdate())
      time += work.end - work.begin;
  return time;
}

int64_t NanosecondStep::waitBefore(size_t worker, size_t index) const {
  const std::vector<int64_t> &starts = timing.starts[worker];
  int64_t before = index == 0 ? begin(worker) : timing.ends[worker][index - 1];
  return (index == starts.size() ? syncAndUpdate.ends[worker] : starts[index]) -
         before;
}

void NanosecondStep::computeTotals() {
  size_t workers = timing.starts.size();
  syncAndUpdate.work.resize(workers);
  syncAndUpdate.actionEnds.assign(workers, 0);
  timing.busy.assign(workers, 0);
  timing.makespan = 0;
  for (size_t w = 0; w < workers; ++w) {
    const std::vector<int64_t> &ends = timing.ends[w];
    for (size_t i = 0; i < ends.size(); ++i)
      timing.busy[w] += ends[i] - timing.starts[w][i];
    if (!ends.empty())
      syncAndUpdate.actionEnds[w] = ends.back();
    timing.makespan = std::max(timing.makespan, syncAndUpdate.actionEnds[w]);
  }
  syncAndUpdate.ends = syncAndUpdate.actionEnds;
  for (size_t w = 0; w < workers; ++w)
    for (const SyncAndUpdate::Work &work : syncAndUpdate.work[w])
      syncAndUpdate.ends[w] = std::max(syncAndUpdate.ends[w], work.end);
  timing.idle.clear();
  for (int64_t busy : timing.busy)
    timing.idle.push_back(timing.makespan - busy);
}

std::optional<NanosecondStep>
nanosecondStepOf(const Timeline &timeline, std::span<const int64_t> begins) {
  const Wide unit = nanosecondsOf(*timeline.scale.unit);
  const int64_t perUnit = timeline.scale.perUnit;
  auto nanoseconds = [&](int64_t ticks) {
    return static_cast<int64_t>((unit * ticks + perUnit / 2) / perUnit);
  };
  if (unit * timeline.end() / perUnit > kMostNanoseconds)
    return std::nullopt;
  NanosecondStep step;
  for (int64_t begin : begins)
    step.begins.push_back(nanoseconds(begin));
  step.timing.starts = timeline.timing.starts;
  step.timing.ends = timeline.timing.ends;
  for (std::vector<std::vector<int64_t>> *times :
       {&step.timing.starts, &step.timing.ends})
    for (std::vector<int64_t> &row : *times)
      std::ranges::transform(row, row.begin(), nanoseconds);
  auto convert = [&](Span &span) {
    span.begin = nanoseconds(span.begin);
    span.end = nanoseconds(span.end);
  };
  if (timeline.occupations) {
    step.occupations = *timeline.occupations;
    for (std::vector<Occupation> &row : step.occupations)
      std::ranges::for_each(row, convert);
  }
  if (timeline.syncAndUpdate) {
    step.syncAndUpdate = *timeline.syncAndUpdate;
    std::ranges::for_each(step.syncAndUpdate.allReduces, convert);
    for (std::vector<SyncAndUpdate::Work> &work : step.syncAndUpdate.work)
      std::ranges::for_each(work, convert);
  }
  step.computeTotals();
  return step;
}

Timeline timelineOf(const Timeline &timeline, const NanosecondStep &step) {
  return {.name = timeline.name,
          .title = timeline.title,
          .problem = timeline.problem,
          .schedule = timeline.schedule,
          .timing = step.timing,
          .scale = {timeline.scale.unit, nanosecondsOf(*timeline.scale.unit)},
          .picture = timeline.picture,
          .syncAndUpdate = &step.syncAndUpdate,
          .occupations = step.occupations.empty() ? nullptr : &step.occupations,
          .isPart = true};
}

} // namespace chimera::schedule
