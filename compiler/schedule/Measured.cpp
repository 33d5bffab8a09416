//===- Measured.cpp - A step that ran, from its trace ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Measured.h"

#include "compiler/schedule/TraceReader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace chimera::schedule {

namespace {

constexpr std::array<Kind, 5> kKinds = {Kind::Forward, Kind::Backward,
                                        Kind::InputGradient,
                                        Kind::WeightGradient, Kind::Recompute};

/// An event of a worker, of whatever kind, in nanoseconds.
struct Event : Tail::Span {
  std::string name, category;
};

/// An action as a trace has it, all steps counted in one.
struct RanAction : Tail::Span {
  Action action;
  int64_t step;
};

/// What one copy did.
struct Copy {
  std::vector<std::vector<RanAction>> actions; ///< of each worker
  std::vector<std::vector<Event>> others;
};

std::string nameOf(size_t worker) { return "P" + std::to_string(worker); }

/// "0 to 3", "0".
std::string rangeTo(int64_t last) {
  return last > 0 ? "0 to " + std::to_string(last) : "0";
}

/// The name of an event, which may be long.
std::string quoted(const std::string &name) {
  constexpr size_t kMost = 100;
  return "\"" + (name.size() > kMost ? name.substr(0, kMost) + "…" : name) +
         "\"";
}

std::string counted(int32_t copies) {
  return std::to_string(copies) + (copies == 1 ? " copy" : " copies");
}

/// Sorts the events of a trace by copy and worker.
class Sorter {
public:
  explicit Sorter(const Problem &problem) : problem(problem), ids(problem) {}

  /// Says in `error` what is wrong, the first time.
  void add(const TraceEvent &event) {
    if (!error.empty())
      return;
    const Kind *kind = std::ranges::find_if(kKinds, [&](Kind kind) {
      return event.category == schedule::nameOf(kind);
    });
    bool isAction = kind != kKinds.end();
    bool isKnown =
        isAction || event.category == "update" || event.category == "wait";
    std::optional<Tail::Span> span = spanOf(event);
    if (!span || !event.process || !event.thread) {
      if (isKnown)
        error = "expected ts, dur, pid and tid that are numbers, times of at "
                "least 0 and less than 100 days, got others for " +
                quoted(event.name);
      return;
    }
    if (*event.thread < 0 || *event.thread >= problem.workers) {
      // Rows of sums, which the compiler draws below its workers.
      if (isKnown)
        expectInRange("worker", problem.workers, *event.thread, event);
      return;
    }
    Copy &copy = copies[*event.process];
    // The compiler draws one copy of them all. More take memory for nothing.
    if (std::ssize(copies) > problem.width) {
      error = "expected one process for each of " + counted(problem.width) +
              ", got more";
      return;
    }
    copy.actions.resize(problem.workers);
    copy.others.resize(problem.workers);
    if (!isAction)
      copy.others[*event.thread].push_back({*span, event.name, event.category});
    else if (auto action = actionOf(event, *kind))
      copy.actions[*event.thread].push_back(
          {*span, *action, event.step.value_or(0)});
  }

  std::map<int64_t, Copy> copies; ///< by process
  std::string error;

private:
  static std::optional<Tail::Span> spanOf(const TraceEvent &event) {
    constexpr double kMost = static_cast<double>(kMostNanoseconds) / 1000;
    if (!event.begin || !event.duration || !(*event.begin >= 0) ||
        !(*event.duration >= 0) || !(*event.begin + *event.duration <= kMost))
      return std::nullopt;
    return Tail::Span{std::llround(*event.begin * 1000),
                      std::llround((*event.begin + *event.duration) * 1000)};
  }

  bool expectInRange(const char *what, int64_t count, int64_t value,
                     const TraceEvent &event) {
    if (value >= 0 && value < count)
      return true;
    error = std::string("expected ") + what + " " + rangeTo(count - 1) +
            ", got " + std::to_string(value) + " for " + quoted(event.name);
    return false;
  }

  /// The action, numbered as in its step. None, with an error, where the
  /// problem has no such.
  std::optional<Action> actionOf(const TraceEvent &event, Kind kind) {
    if (!event.pipeline || !event.stage || !event.microBatch) {
      error = "expected the arguments pipeline, stage and micro_batch that are "
              "whole numbers, got others for " +
              quoted(event.name);
      return std::nullopt;
    }
    constexpr int64_t kMostSteps = int64_t{1} << 31;
    int64_t step = event.step.value_or(0), batches = problem.microBatches();
    if (!expectInRange("step", kMostSteps, step, event) ||
        !expectInRange("pipeline", std::ssize(problem.pipelines),
                       *event.pipeline, event) ||
        !expectInRange("stage", std::ssize(problem.stages), *event.stage,
                       event))
      return std::nullopt;
    // In range before it is subtracted from.
    int64_t first = step * batches;
    if (*event.microBatch < first || *event.microBatch >= first + batches) {
      error = "expected micro_batch " + std::to_string(first) + " to " +
              std::to_string(first + batches - 1) +
              (step > 0 ? " in step " + std::to_string(step) : "") + ", got " +
              std::to_string(*event.microBatch) + " for " + quoted(event.name);
      return std::nullopt;
    }
    auto fits = [](int64_t value, int64_t least, auto type) {
      return value >= least &&
             value <= std::numeric_limits<decltype(type)>::max();
    };
    int64_t count = event.microBatches.value_or(1);
    int64_t part = event.part.value_or(0), parts = event.parts.value_or(1);
    if (fits(count, 1, uint16_t()) && fits(part, 0, uint8_t()) &&
        fits(parts, 1, uint8_t())) {
      Action action{kind,
                    static_cast<int32_t>(*event.pipeline),
                    static_cast<int32_t>(*event.stage),
                    static_cast<int32_t>(*event.microBatch - first),
                    static_cast<uint16_t>(count),
                    static_cast<uint8_t>(part),
                    static_cast<uint8_t>(parts)};
      if (ids.find(action))
        return action;
    }
    error = "expected an action of this pipeline, got " + quoted(event.name) +
            " of pipeline " + std::to_string(*event.pipeline) + ", stage " +
            std::to_string(*event.stage);
    return std::nullopt;
  }

  const Problem &problem;
  ActionIds ids;
};

/// Finds the actions of a schedule in one copy.
class Matcher {
public:
  Matcher(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), ids(problem),
        places(ids.count(), Turn{-1, -1}) {
    for (size_t w = 0; w < schedule.workers.size(); ++w)
      for (size_t i = 0; i < schedule.workers[w].size(); ++i)
        places[ids.idOf(schedule.workers[w][i])] = {static_cast<int32_t>(w),
                                                    static_cast<int32_t>(i)};
  }

  /// The step number `last` of the copy, or what is wrong with it.
  std::variant<Measured, std::string> match(const Copy &copy, int64_t last) {
    Measured run;
    for (const std::vector<Action> &row : schedule.workers) {
      run.timing.starts.emplace_back(row.size(), -1);
      run.durations.emplace_back(row.size(), 0);
    }
    // When each worker was done with the step before.
    std::vector<int64_t> before(schedule.workers.size(), -1);
    for (size_t w = 0; w < copy.actions.size(); ++w)
      for (const RanAction &ran : copy.actions[w]) {
        if (ran.step != last)
          before[w] = std::max(before[w], ran.end);
        else if (std::string error = place(run, w, ran); !error.empty())
          return error;
      }
    if (std::string error = checkOrder(run); !error.empty())
      return error;
    for (size_t w = 0; w < copy.others.size(); ++w)
      if (std::string error = addOthers(run, w, copy.others[w], before[w]);
          !error.empty())
        return error;
    beginAtZero(run);
    run.complete();
    return run;
  }

private:
  std::string place(Measured &run, size_t worker, const RanAction &ran) const {
    auto [owner, index] = places[ids.idOf(ran.action)];
    if (owner < 0)
      return "expected no " + describe(ran.action) + ", got it on " +
             nameOf(worker);
    if (owner != static_cast<int32_t>(worker))
      return "expected " + describe(ran.action) + " on " + nameOf(owner) +
             ", got it on " + nameOf(worker);
    int64_t &start = run.timing.starts[worker][index];
    if (start >= 0)
      return "expected " + describe(ran.action) + " once, got it twice";
    start = ran.begin;
    run.durations[worker][index] = ran.end - ran.begin;
    return {};
  }

  /// All actions are there, and each after the one before it.
  std::string checkOrder(Measured &run) const {
    // Times of a trace are rounded.
    constexpr int64_t kRounding = 2;
    for (size_t w = 0; w < schedule.workers.size(); ++w) {
      const std::vector<Action> &row = schedule.workers[w];
      std::vector<int64_t> &starts = run.timing.starts[w];
      for (size_t i = 0; i < row.size(); ++i)
        if (starts[i] < 0)
          return "expected " + describe(row[i]) + " on " + nameOf(w) +
                 ", got none";
      for (size_t i = 1; i < row.size(); ++i) {
        int64_t end = starts[i - 1] + run.durations[w][i - 1];
        if (starts[i] + kRounding < end)
          return "expected " + describe(row[i - 1]) + " before " +
                 describe(row[i]) + " on " + nameOf(w) + ", got another order";
        int64_t late = std::max<int64_t>(end - starts[i], 0);
        starts[i] += late;
        run.durations[w][i] -= std::min(late, run.durations[w][i]);
      }
    }
    return {};
  }

  /// `before` is when the worker ended the actions of earlier steps.
  std::string addOthers(Measured &run, size_t worker,
                        const std::vector<Event> &events,
                        int64_t before) const {
    const std::vector<int64_t> &starts = run.timing.starts[worker];
    int64_t first = starts.empty() ? 0 : starts.front();
    run.tail.work.resize(schedule.workers.size());
    run.others.resize(schedule.workers.size());
    std::vector<Tail::Work> &all = run.tail.work[worker];
    std::map<std::string, Tail::Work> names = worksOf(worker);
    for (const Event &event : events) {
      auto known = names.find(event.name);
      if (known == names.end()) {
        if (event.category == "update")
          return "expected an update of a stage that " + nameOf(worker) +
                 " has, got " + quoted(event.name);
        continue;
      }
      // Those of a step follow its first action.
      if (event.begin < first) {
        before = std::max(before, event.end);
        continue;
      }
      Tail::Work &work = all.emplace_back(known->second);
      work.begin = event.begin;
      work.end = event.end;
    }
    std::ranges::stable_sort(all, {}, &Tail::Work::begin);
    for (const Event &event : events)
      if (!names.contains(event.name) && event.category != "all-reduce" &&
          event.begin >= before)
        run.others[worker].push_back({event, event.name, event.category});
    return {};
  }

  /// The updates and waits that a worker may have, by their names.
  std::map<std::string, Tail::Work> worksOf(size_t worker) const {
    std::map<std::string, Tail::Work> names;
    auto addWait = [&](std::optional<int32_t> stage) {
      names["wait for " + nameOfSum(stage)].stage = stage;
    };
    addWait(std::nullopt);
    for (size_t p = 0; p < problem.pipelines.size(); ++p)
      for (size_t s = 0; s < problem.stages.size(); ++s)
        if (problem.pipelines[p].workers[s] == static_cast<int32_t>(worker)) {
          auto stage = static_cast<int32_t>(s);
          addWait(stage);
          Tail::Work &update = names["update of stage " + std::to_string(s)];
          update.stage = stage;
          update.pipeline = static_cast<int32_t>(p);
        }
    return names;
  }

  /// Counts from the first action; leaves out what began before it.
  static void beginAtZero(Measured &run) {
    int64_t origin = std::numeric_limits<int64_t>::max();
    for (const std::vector<int64_t> &starts : run.timing.starts)
      if (!starts.empty())
        origin = std::min(origin, starts.front());
    for (std::vector<int64_t> &starts : run.timing.starts)
      for (int64_t &start : starts)
        start -= origin;
    auto shift = [&](Tail::Span &span) {
      span.begin -= origin;
      span.end -= origin;
    };
    for (std::vector<Tail::Work> &work : run.tail.work)
      std::ranges::for_each(work, shift);
    for (std::vector<Measured::Other> &others : run.others) {
      std::ranges::for_each(others, shift);
      std::erase_if(
          others, [](const Measured::Other &other) { return other.begin < 0; });
    }
  }

  const Problem &problem;
  const Schedule &schedule;
  ActionIds ids;
  std::vector<Turn> places; ///< in the schedule, of each number
};

} // namespace

std::variant<Measured, std::string> readMeasured(std::string_view text,
                                                 const Problem &problem,
                                                 const Schedule &schedule,
                                                 std::optional<int64_t> copy) {
  Sorter sorter(problem);
  std::optional<int64_t> firstStep;
  std::string error = readTrace(
      text, [&](const TraceEvent &event) { sorter.add(event); }, firstStep);
  if (error.empty())
    error = sorter.error;
  if (!error.empty())
    return error;
  auto copies = static_cast<int64_t>(sorter.copies.size());
  if (copies == 0)
    return "expected actions of this pipeline, got none";
  if (copies > 1 && copies != problem.width)
    return "expected one process for each of " + counted(problem.width) +
           ", got " + std::to_string(copies);
  if (copy && (*copy < 0 || *copy >= copies))
    return "expected copy " + rangeTo(copies - 1) + ", got " +
           std::to_string(*copy);
  int64_t last = 0;
  for (const auto &[process, of] : sorter.copies)
    for (const std::vector<RanAction> &row : of.actions)
      for (const RanAction &ran : row)
        last = std::max(last, ran.step);
  Matcher matcher(problem, schedule);
  std::optional<Measured> slowest;
  int32_t number = 0;
  for (const auto &[process, of] : sorter.copies) {
    auto matched = matcher.match(of, last);
    if (const auto *problem = std::get_if<std::string>(&matched))
      return (copies > 1 ? "copy " + std::to_string(number) + ": " : "") +
             *problem;
    auto &run = std::get<Measured>(matched);
    run.copy = number++;
    run.copies = static_cast<int32_t>(copies);
    run.isSlowest = copies > 1 && !copy;
    constexpr int64_t kMostSteps = int64_t{1} << 53;
    if (firstStep && *firstStep > 0 && *firstStep < kMostSteps)
      run.step = *firstStep + last;
    bool isWanted =
        copy ? run.copy == *copy : !slowest || run.end() > slowest->end();
    if (isWanted)
      slowest = std::move(run);
  }
  return std::move(*slowest);
}

} // namespace chimera::schedule
