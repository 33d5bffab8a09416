//===- Timeline.h - A schedule as text or picture ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
#define CHIMERA_COMPILER_SCHEDULE_TIMELINE_H

#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/text/TimeUnit.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace chimera::schedule {

/// The numbers of the chunks of all workers. The chunks of a worker are the
/// stages of one pipeline on that worker.
class Chunks {
public:
  explicit Chunks(const Problem &problem);

  /// The number of the action's chunk, from 0.
  int32_t numberOf(const Action &action) const {
    return numbers.empty() ? 0 : numbers[action.pipeline][action.stage];
  }

private:
  /// For each pipeline, the number of each stage's chunk. Empty if every worker
  /// has one stage of each pipeline.
  std::vector<std::vector<int32_t>> numbers;
};

/// The mark of a chunk, written after a micro-batch: nothing for chunk 0, then
/// ', '2, '3, …
std::string chunkMark(int32_t chunk);

/// The default number of characters in a line of text.
inline constexpr size_t kLineWidth = 160;

/// The options of the picture of some timelines.
struct Picture {
  /// The width of the shortest action of all timelines in pixels. 0: axes are
  /// so wide that the boxes are readable. All axes with the same unit have the
  /// same scale.
  double cellWidth = 0;
  /// The range of time that is shown, in the unit in which the longest
  /// timeline's axis is labelled. If `from` or `to` is given, all time axes
  /// have this range and the same width. The default of `from` is 0, and the
  /// default of `to` is the end of the longest timeline.
  std::optional<double> from = {}, to = {};
  /// True if the title and a line with the main times are above the rows. If
  /// it is false and the picture has several timelines, the name of each is
  /// above its rows.
  bool hasTitle = true;
  /// True if the numbers right of the rows are shown: the idle share of each
  /// worker, and its peak activations.
  bool hasIdle = true, hasPeak = true;
};

/// A schedule with its times, for display. Requires a complete timing.
struct Timeline {
  std::string name; ///< of the pipeline
  /// For example "look: chimera, 4 stages, 4 micro-batches", and its options.
  std::string title;
  const Problem &problem;
  const Schedule &schedule;
  const Timing &timing;
  /// True for a timing from slotTiming: every action takes one slot,
  /// independent of its cost.
  bool slots = false;
  TimeScale scale = {};
  size_t lineWidth = kLineWidth; ///< characters in a line of the grid
  Picture picture = {};
  /// All-reduces and updates, and the time of a step with them. Null if they
  /// are not shown.
  const SyncAndUpdate *syncAndUpdate = nullptr;
  StepTime step = {};
  /// Null if messages occupy no worker.
  const Occupations *occupations = nullptr;
  /// True for a part of a run, and for both steps of a SideBySide. The actions
  /// of a part do not determine the bytes that workers keep, or the all-reduces
  /// in progress. So bytes and all-reduces are not shown.
  bool isPart = false;
  Chunks chunks{problem};

  int64_t duration(size_t worker, size_t index) const {
    return timing.ends[worker][index] - timing.starts[worker][index];
  }
  /// The time at which the last worker ends its step.
  int64_t end() const {
    return syncAndUpdate ? std::max(timing.makespan, syncAndUpdate->end())
                         : timing.makespan;
  }
  /// The name of the time axis: "slot", "time", "time in ns".
  std::string axis() const;
};

/// The micro-batches of `action`, short: "3", "8-11", "0a" for a part. Two
/// micro-batches are "01" if every micro-batch of the problem has one digit.
/// The text ends with the mark of the action's chunk.
std::string microBatchText(const Timeline &timeline, const Action &action);

/// The text of `action` in a cell of the grid: "F0", "b3", "F01".
std::string cellOf(const Timeline &timeline, const Action &action);

/// The message that `action` sends or waits for: "activation 3", "gradient 0a".
std::string nameOfMessage(const Timeline &timeline, const Action &action);

/// "send activation 3 to P1", "receive gradient 3 from P1". Requires that
/// `occupation` belongs to a message of `action`.
std::string describe(const Timeline &timeline, const Action &action,
                     const Occupation &occupation);

/// Three lines: makespan, bubble and peak activations per worker. The first
/// line also has the costs and message times for which all three hold.
std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots, const TimeScale &scale = {});

/// How to write a time: with all digits, or as shortTime does.
enum class Digits { All, Short };

/// "forward 1 us, backward 2 us, p2p 0 us"; if stages differ, "forward 3 us to
/// 5 us".
std::string describeTimes(const Problem &problem, const TimeScale &scale = {},
                          Digits digits = Digits::All);

/// "2 steps, which overlap; in the steady state one takes 18 us, bubble 0.0 %".
/// Empty if every step ends with a flush. Requires a valid schedule.
std::string describeSteps(const Problem &problem, const Schedule &schedule,
                          const TimeScale &scale = {},
                          Digits digits = Digits::All);

/// "step 23 us = actions 20 us + un-overlapped all-reduce 2 us + updates 1 us
/// (mean of many steps)". Empty if the timeline has no `syncAndUpdate`.
std::string describeStep(const Timeline &timeline);

/// "messages (> send, < receive) occupy workers for 4 2 us of their idle time",
/// with a time for each worker. Empty if no message occupies a worker.
std::string describeOccupations(const Timeline &timeline);

/// "all-reduce of stage 1", "all-reduce of the norm" if `isNorm`, or
/// "all-reduce of tied weights".
std::string nameOfAllReduce(std::optional<int32_t> stage, bool isNorm = false);

/// The values as text, separated by blanks.
template <typename T> std::string join(const std::vector<T> &values) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TIMELINE_H
