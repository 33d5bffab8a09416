//===- Timeline.h - A schedule as text or picture ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINE_H

#include "compiler/schedule/TimeUnit.h"
#include "compiler/schedule/timeline/Occupations.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace chimera::schedule {

/// The micro-batches of `action`, short: "3", "8-11", "0a"; "01" where one
/// digit is enough for each micro-batch of the problem. Of a worker's second
/// stage of a pipeline with ', of its third with '2.
std::string coverOf(const Problem &problem, const Action &action);

/// What a cell of the grid has of `action`: "F0", "b3", "F01".
std::string cellOf(const Problem &problem, const Action &action);

/// The message that `action` makes or awaits: "activation 3", "gradient 0a".
std::string nameOfMessage(const Problem &problem, const Action &action);

/// "send activation 3 to P1", "receive gradient 3 from P1". Requires an
/// occupation by a message of `action`.
std::string describe(const Problem &problem, const Action &action,
                     const Occupation &occupation);

/// Characters in a line of text where nobody says how many there are.
inline constexpr size_t kLineWidth = 160;

/// A schedule with its times, to be shown. Requires a complete timing.
struct Timeline {
  std::string name; ///< of the pipeline
  /// "look: chimera, 4 stages, 4 micro-batches", and its options.
  std::string title;
  const Problem &problem;
  const Schedule &schedule;
  const Timing &timing;
  /// True for slotTiming: every action is one slot long, whatever it costs.
  bool slots = false;
  TimeScale scale = {};
  size_t lineWidth = kLineWidth; ///< characters in a line of the grid
  /// What workers do besides actions, and what a step takes with it; null for
  /// nothing.
  const Tail *tail = nullptr;
  StepTime step = {};
  /// Null where messages occupy nobody.
  const Occupations *occupations = nullptr;
  /// True for a part of a run, or a step beside one: what workers hold and
  /// which all-reduces are under way is not all that its actions tell.
  bool isPart = false;

  int64_t duration(size_t worker, size_t index) const {
    return timing.ends[worker][index] - timing.starts[worker][index];
  }
  /// When the last worker is done with its step.
  int64_t end() const {
    return tail ? std::max(timing.makespan, tail->end()) : timing.makespan;
  }
  /// The name of the time axis: "slot", "time", "time in ns".
  std::string axis() const;
};

struct SideBySide;

/// A form of timelines. Parser, help and tests all walk `timelineFormats()`.
struct TimelineFormat {
  const char *name;
  const char *summary;
  /// One document with all of them.
  std::string (*render)(std::span<const Timeline> timelines);
  /// One document with one of them and what ran (SideBySide.h).
  std::string (*renderBeside)(const SideBySide &both);
};

std::span<const TimelineFormat> timelineFormats();

/// The grid in the Chimera paper's form: a row for each worker, a column for
/// each tick, headed by its slot or its time. A cell names kind and micro-batch
/// (F forward, B backward, I input gradient, W weight gradient, R recompute),
/// in upper case for down pipelines and lower case for up pipelines; F01 covers
/// micro-batches 0 and 1, F8-11 those from 8 to 11, B0a and B0b the halves of
/// micro-batch 0; `=` continues an action and `.` is idle. Besides actions,
/// A1 is a wait for the all-reduce of stage 1, A for that of what first and
/// last stage share, U1 and u1 are updates of stage 1. In each cell of `>` the
/// worker sends the message of the action before it, in each of `<` it receives
/// the message of the action behind it. Requires a complete timing. Lines have
/// at most `lineWidth` characters, 0 for any number, or one
/// column: the columns that do not fit are further grids below, each with its
/// own head.
std::string renderGrid(const Timeline &timeline);

/// Three lines: makespan, bubble and peak activations per worker, with the
/// times they hold for.
std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots, const TimeScale &scale = {});

/// Which digits of a time are written: all, or those of shortTime.
enum class Digits { All, Short };

/// "forward 1 us, backward 2 us, p2p 0 us"; "forward 3 us to 5 us" where stages
/// differ.
std::string describeTimes(const Problem &problem, const TimeScale &scale = {},
                          Digits digits = Digits::All);

/// "2 steps, which overlap; in the steady state one takes 18 us, bubble 0.0 %";
/// empty where a flush ends each. Requires a valid schedule.
std::string describeSteps(const Problem &problem, const Schedule &schedule,
                          const TimeScale &scale = {},
                          Digits digits = Digits::All);

/// "step 23 us, of it actions 20 us, un-overlapped all-reduce 2 us, updates 1
/// us, on average of many"; empty where no tail is shown.
std::string describeStep(const Timeline &timeline);

/// "messages (> send, < receive) occupy workers for 4 2 us of their idle time",
/// a time for each worker; empty where no message occupies a worker.
std::string describeOccupations(const Timeline &timeline);

/// "all-reduce of stage 1", "all-reduce of what first and last stage share".
std::string nameOfAllReduce(std::optional<int32_t> stage);

/// A title, a grid and a summary for each timeline, and a line that explains
/// the signs of messages where the grid has any. Where a grid would have
/// more columns than anybody reads, a line says how else to see it.
std::string renderText(std::span<const Timeline> timelines);

/// Values with blanks between them.
template <typename T> std::string join(const std::vector<T> &values) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
