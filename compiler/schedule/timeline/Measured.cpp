//===- Measured.cpp - A measured step, read from its trace ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Measured.h"

#include "compiler/schedule/timeline/SortedTrace.h"

#include <algorithm>
#include <limits>
#include <map>

namespace chimera::schedule {

namespace {

std::string workerName(size_t worker) { return "P" + std::to_string(worker); }

/// The times before and after the step that is read from the events of one
/// worker.
struct TimesAroundStep {
  /// The end of the worker's last action before the step, or -1 if there is no
  /// such action.
  int64_t before = -1;
  /// The start of the worker's first action after the step, or the largest
  /// integer if there is no such action.
  int64_t next = std::numeric_limits<int64_t>::max();
};

/// Finds the actions of a schedule in the events of one data-parallel copy.
class Matcher {
public:
  Matcher(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), ids(problem),
        refs(ids.count(), ActionRef{-1, -1}) {
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i)
        refs[ids.idOf(schedule.workers[w][i])] = {static_cast<int32_t>(w),
                                                  static_cast<int32_t>(i)};
  }

  /// Finds the schedule's actions in step number `last` of the copy or, if
  /// steps overlap, in the copy's last body, which begins in step `last` - 1.
  /// Returns the times, or an error if an action does not match.
  std::variant<MeasuredStep, std::string> match(const CopyEvents &copy,
                                                int64_t last) {
    MeasuredStep run;
    for (const std::vector<Action> &row : schedule.workers)
      run.timing.starts.emplace_back(row.size(), -1);
    run.timing.ends = run.timing.starts;
    std::vector<std::vector<MeasuredAction>> others(copy.actions.size());
    for (size_t w = 0; w < copy.actions.size(); ++w)
      for (const MeasuredAction &ran : copy.actions[w]) {
        std::optional<Action> action = actionInStep(ran, last);
        if (!action)
          others[w].push_back(ran);
        else if (std::string error = setTimes(run, w, ran, *action);
                 !error.empty())
          return error;
      }
    if (std::string error = checkOrder(run); !error.empty())
      return error;
    for (size_t w = 0; w < copy.others.size(); ++w) {
      auto around = findTimesAround(run, w, others[w]);
      if (auto *error = std::get_if<std::string>(&around))
        return std::move(*error);
      if (std::string error = addOthers(run, w, copy.others[w],
                                        std::get<TimesAroundStep>(around));
          !error.empty())
        return error;
    }
    beginAtZero(run);
    run.computeTotals();
    return run;
  }

private:
  bool overlaps() const { return stepsOverlap(problem.updates); }

  /// The action with the micro-batch number that the schedule uses. None if the
  /// action is not part of step number `last` or, if steps overlap, of the last
  /// body.
  std::optional<Action> actionInStep(const MeasuredAction &ran,
                                     int64_t last) const {
    Action action = ran.action;
    if (!overlaps())
      return ran.step == last ? std::optional(action) : std::nullopt;
    int64_t steps = ran.step - (last - 1); // since the first step of the body
    if (steps < 0 || steps >= problem.steps)
      return std::nullopt;
    action.microBatch += static_cast<int32_t>(steps) * problem.microBatches();
    bool isInBody = refs[ids.idOf(action)].worker >= 0;
    return isInBody ? std::optional(action) : std::nullopt;
  }

  std::string setTimes(MeasuredStep &run, size_t worker,
                       const MeasuredAction &ran, const Action &action) const {
    auto [owner, index] = refs[ids.idOf(action)];
    if (owner < 0)
      return "expected no " + describe(problem, action) + ", got it on " +
             workerName(worker);
    if (owner != static_cast<int32_t>(worker))
      return "expected " + describe(problem, action) + " on " +
             workerName(owner) + ", got it on " + workerName(worker);
    int64_t &start = run.timing.starts[worker][index];
    if (start >= 0)
      return "expected " + describe(problem, action) + " once, got it twice";
    start = ran.begin;
    run.timing.ends[worker][index] = ran.end;
    return {};
  }

  /// Returns an error if an action is missing or starts before the worker's
  /// previous action ends. Removes overlaps that are within the rounding error.
  std::string checkOrder(MeasuredStep &run) const {
    // Actions may overlap by this many nanoseconds, because the times of a
    // trace are rounded.
    constexpr int64_t kRounding = 2;
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      const std::vector<Action> &row = schedule.workers[w];
      std::vector<int64_t> &starts = run.timing.starts[w];
      std::vector<int64_t> &ends = run.timing.ends[w];
      for (size_t i = 0; i < row.size(); ++i)
        if (starts[i] < 0)
          return "expected " + describe(problem, row[i]) + " on " +
                 workerName(w) + ", got none";
      for (size_t i = 1; i < row.size(); ++i) {
        if (starts[i] + kRounding < ends[i - 1])
          return "expected " + describe(problem, row[i - 1]) + " before " +
                 describe(problem, row[i]) + " on " + workerName(w) +
                 ", got another order";
        starts[i] = std::max(starts[i], ends[i - 1]);
        ends[i] = std::max(ends[i], starts[i]);
      }
    }
    return {};
  }

  /// Finds the times before and after the worker's step. `others` are the
  /// worker's actions outside the step. If steps overlap, returns an error if
  /// one of these ran within the body, or if none ran before the body.
  std::variant<TimesAroundStep, std::string>
  findTimesAround(const MeasuredStep &run, size_t worker,
                  const std::vector<MeasuredAction> &others) const {
    const std::vector<int64_t> &starts = run.timing.starts[worker];
    TimesAroundStep around;
    for (const MeasuredAction &other : others)
      if (!overlaps() || starts.empty() || other.begin < starts.front())
        around.before = std::max(around.before, other.end);
      else if (other.begin < starts.back())
        return "expected no action of another step within the step of " +
               workerName(worker) + ", got " +
               describe(other.action, problem.pipelines.size() > 1);
      else
        around.next = std::min(around.next, other.begin);
    if (overlaps() && !starts.empty() && around.before < 0)
      return "expected actions of " + workerName(worker) +
             " before those that are compared, got none";
    return around;
  }

  std::string addOthers(MeasuredStep &run, size_t worker,
                        const std::vector<OtherEvent> &events,
                        TimesAroundStep around) const {
    auto [before, next] = around;
    const std::vector<int64_t> &starts = run.timing.starts[worker];
    int64_t first = starts.empty() ? 0 : starts.front();
    run.syncAndUpdate.work.resize(schedule.workers.size());
    run.others.resize(schedule.workers.size());
    std::vector<SyncAndUpdate::Work> &all = run.syncAndUpdate.work[worker];
    std::map<std::string, SyncAndUpdate::Work> names = worksOf(worker);
    for (const OtherEvent &event : events) {
      auto known = names.find(event.name);
      if (known == names.end()) {
        if (event.category == "update")
          return "expected an update of a stage that " + workerName(worker) +
                 " has, got " + quoted(event.name);
        continue;
      }
      if (event.begin >= next)
        continue;
      // An update or a wait before the first action belongs to the previous
      // step.
      if (event.begin < first) {
        before = std::max(before, event.end);
        continue;
      }
      SyncAndUpdate::Work &work = all.emplace_back(known->second);
      work.begin = event.begin;
      work.end = event.end;
    }
    std::ranges::stable_sort(all, {}, &SyncAndUpdate::Work::begin);
    for (const OtherEvent &event : events)
      if (!names.contains(event.name) && event.category != "all-reduce" &&
          event.begin >= before && event.begin < next)
        run.others[worker].push_back({event, event.name, event.category});
    if (overlaps())
      run.begins.push_back(before);
    return {};
  }

  /// The updates and waits that a worker may have, by event name.
  std::map<std::string, SyncAndUpdate::Work> worksOf(size_t worker) const {
    std::map<std::string, SyncAndUpdate::Work> names;
    auto addWait = [&](std::optional<int32_t> stage) {
      names["wait for " + nameOfAllReduce(stage)].stage = stage;
    };
    addWait(std::nullopt);
    SyncAndUpdate::Work &norm =
        names["wait for " + nameOfAllReduce(std::nullopt, /*isNorm=*/true)];
    norm.isNorm = true;
    for (size_t p = 0; p < problem.pipelines.size(); ++p)
      for (size_t s = 0; s < problem.stages.size(); ++s)
        if (problem.pipelines[p].workers[s] == static_cast<int32_t>(worker)) {
          auto stage = static_cast<int32_t>(s);
          addWait(stage);
          SyncAndUpdate::Work &update =
              names["update of stage " + std::to_string(s)];
          update.stage = stage;
          update.pipeline = static_cast<int32_t>(p);
        }
    return names;
  }

  /// Moves time 0 to the start of the first action or, if steps overlap, of the
  /// body that begins first. Removes the other activities that began before
  /// time 0.
  static void beginAtZero(MeasuredStep &run) {
    int64_t origin = std::numeric_limits<int64_t>::max();
    for (size_t w = 0; w < run.timing.starts.size(); ++w)
      if (const std::vector<int64_t> &starts = run.timing.starts[w];
          !starts.empty())
        origin =
            std::min(origin, run.overlaps() ? run.begins[w] : starts.front());
    for (size_t w = 0; w < run.begins.size(); ++w)
      run.begins[w] = run.timing.starts[w].empty() ? 0 : run.begins[w] - origin;
    for (auto *times : {&run.timing.starts, &run.timing.ends})
      for (std::vector<int64_t> &row : *times)
        for (int64_t &time : row)
          time -= origin;
    auto shift = [&](Span &span) {
      span.begin -= origin;
      span.end -= origin;
    };
    for (std::vector<SyncAndUpdate::Work> &work : run.syncAndUpdate.work)
      std::ranges::for_each(work, shift);
    for (std::vector<MeasuredStep::Other> &others : run.others) {
      std::ranges::for_each(others, shift);
      std::erase_if(others, [](const MeasuredStep::Other &other) {
        return other.begin < 0;
      });
    }
  }

  const Problem &problem;
  const Schedule &schedule;
  ActionIds ids;
  std::vector<ActionRef> refs; ///< position in the schedule, by action id
};

} // namespace

std::variant<MeasuredStep, std::string>
readMeasured(std::string_view text, const Problem &problem,
             const Schedule &schedule, std::optional<int64_t> copy) {
  auto sorted = sortTrace(text, problem);
  if (auto *error = std::get_if<std::string>(&sorted))
    return std::move(*error);
  const auto &trace = std::get<SortedTrace>(sorted);
  auto copies = static_cast<int64_t>(trace.copies.size());
  if (copy && (*copy < 0 || *copy >= copies))
    return "expected copy " + rangeTo(copies - 1) + ", got " +
           std::to_string(*copy);
  int64_t last = trace.lastStep();
  bool overlaps = stepsOverlap(problem.updates);
  if (overlaps && last < 2)
    return "expected micro-batches of 3 steps or more, as a run of 3 steps "
           "has with --trace-steps 2, got those of " +
           std::to_string(last + 1);
  Matcher matcher(problem, schedule);
  std::optional<MeasuredStep> slowest;
  int32_t number = 0;
  for (const auto &[process, of] : trace.copies) {
    auto matched = matcher.match(of, last);
    if (const auto *problem = std::get_if<std::string>(&matched))
      return (copies > 1 ? "copy " + std::to_string(number) + ": " : "") +
             *problem;
    auto &run = std::get<MeasuredStep>(matched);
    run.copy = number++;
    run.copies = static_cast<int32_t>(copies);
    run.isSlowest = copies > 1 && !copy;
    constexpr int64_t kMostSteps = int64_t{1} << 53;
    if (auto first = trace.header.firstStep;
        first && *first > 0 && *first < kMostSteps)
      run.step = *first + last - (overlaps ? 1 : 0);
    for (const std::vector<Action> &row : schedule.workers)
      for (const Action &action : row)
        run.steps =
            std::max(run.steps, action.microBatch / problem.microBatches() + 1);
    bool isWanted =
        copy ? run.copy == *copy : !slowest || run.length() > slowest->length();
    if (isWanted)
      slowest = std::move(run);
  }
  const TraceHeader &header = trace.header;
  slowest->pipeline = header.pipeline;
  slowest->sharedCores = header.threads && header.coresPerRank &&
                         *header.coresPerRank < *header.threads;
  return std::move(*slowest);
}

} // namespace chimera::schedule
