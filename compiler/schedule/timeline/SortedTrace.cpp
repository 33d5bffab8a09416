//===- SortedTrace.cpp - Events of a trace by copy and worker -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SortedTrace.h"

#include "compiler/schedule/timeline/NanosecondStep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace chimera::schedule {

std::string rangeTo(int64_t last) {
  return last > 0 ? "0 to " + std::to_string(last) : "0";
}

std::string quoted(const std::string &name) {
  constexpr size_t kMost = 100;
  return "\"" + (name.size() > kMost ? name.substr(0, kMost) + "…" : name) +
         "\"";
}

namespace {

std::string counted(int32_t copies) {
  return std::to_string(copies) + (copies == 1 ? " copy" : " copies");
}

/// Sorts the events of a trace by copy and worker.
class Sorter {
public:
  /// `header` is filled while the trace is read.
  Sorter(const Problem &problem, const TraceHeader &header)
      : problem(problem), header(header), ids(problem) {}

  /// Sets `error` if the event is not valid; the first error is kept.
  void add(const TraceEvent &event) {
    if (!error.empty() || (header.firstProcess && event.process &&
                           *event.process < *header.firstProcess))
      return;
    const KindRow *row = std::ranges::find_if(
        kActionKinds, [&](const char *name) { return event.category == name; },
        &KindRow::name);
    bool isAction = row != std::end(kActionKinds);
    bool isKnown =
        isAction || event.category == "update" || event.category == "wait";
    std::optional<Span> span = spanOf(event);
    if (!span || !event.process || !event.thread) {
      if (isKnown)
        error = "event " + quoted(event.name) +
                ": expected numbers for ts, dur, pid and tid, and times from 0 "
                "to 100 days";
      return;
    }
    if (*event.thread < 0 || *event.thread >= problem.workers) {
      // A trace from the compiler has rows of all-reduces after the rows of the
      // workers. These rows are ignored. Only actions, updates and waits must
      // be on a worker.
      if (isKnown)
        expectInRange("worker", problem.workers, *event.thread, event);
      return;
    }
    CopyEvents &copy = copies[*event.process];
    // Too many copies are an error at once, before they use memory. sortTrace
    // checks for too few copies later, because a trace from the compiler has
    // only one copy.
    if (std::ssize(copies) > problem.width) {
      error = "expected one process for each of " + counted(problem.width) +
              ", got more";
      return;
    }
    copy.actions.resize(problem.workers);
    copy.others.resize(problem.workers);
    if (!isAction)
      copy.others[*event.thread].push_back({*span, event.name, event.category});
    else if (auto action = actionOf(event, row->kind))
      copy.actions[*event.thread].push_back(
          {*span, *action, event.step.value_or(0)});
  }

  std::map<int64_t, CopyEvents> copies; ///< by process
  std::string error;

private:
  static std::optional<Span> spanOf(const TraceEvent &event) {
    constexpr double kMost = static_cast<double>(kMostNanoseconds) / 1000;
    if (!event.begin || !event.duration || !(*event.begin >= 0) ||
        !(*event.duration >= 0) || !(*event.begin + *event.duration <= kMost))
      return std::nullopt;
    return Span{std::llround(*event.begin * 1000),
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

  /// The action, with its micro-batch numbered within its step. If the problem
  /// has no such action, sets `error` and returns none.
  std::optional<Action> actionOf(const TraceEvent &event, Kind kind) {
    if (!event.pipeline || !event.stage || !event.microBatch) {
      error = "event " + quoted(event.name) +
              ": expected whole numbers for the arguments pipeline, stage and "
              "micro_batch";
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
    // Check the range before microBatch - first is computed, because the
    // difference could overflow.
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
  const TraceHeader &header;
  ActionIds ids;
};

} // namespace

int64_t SortedTrace::lastStep() const {
  int64_t last = 0;
  for (const auto &[process, of] : copies)
    for (const std::vector<MeasuredAction> &row : of.actions)
      for (const MeasuredAction &ran : row)
        last = std::max(last, ran.step);
  return last;
}

std::variant<SortedTrace, std::string> sortTrace(std::string_view text,
                                                 const Problem &problem) {
  SortedTrace trace;
  Sorter sorter(problem, trace.header);
  std::string error = readTrace(
      text, [&](const TraceEvent &event) { sorter.add(event); }, trace.header);
  if (error.empty())
    error = sorter.error;
  if (!error.empty())
    return error;
  trace.copies = std::move(sorter.copies);
  auto copies = static_cast<int64_t>(trace.copies.size());
  if (copies == 0)
    return "expected actions of this pipeline, got none";
  if (copies > 1 && copies != problem.width)
    return "expected one process for each of " + counted(problem.width) +
           ", got " + std::to_string(copies);
  return trace;
}

} // namespace chimera::schedule
