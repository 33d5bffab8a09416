//===- Timeline.cpp - A schedule as text or picture -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Timeline.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/SharedCores.h"
#include "compiler/schedule/Steps.h"
#include "compiler/schedule/timeline/ChromeTrace.h"
#include "compiler/schedule/timeline/SideBySide.h"
#include "compiler/schedule/timeline/Svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

namespace chimera::schedule {

namespace {

/// The most columns of a grid. With 32 workers, these already fill thousands of
/// lines.
constexpr int64_t kMostColumns = 1000;
/// The most columns of a grid whose times are rounded.
constexpr int64_t kMostRounded = 250;

void appendRow(std::string &text, const std::string &head, size_t headWidth,
               std::span<const std::string> cells, size_t width) {
  std::string row = head;
  row.resize(headWidth, ' ');
  for (const std::string &cell : cells) {
    row += cell;
    row.append(width - cell.size(), ' ');
  }
  row.erase(row.find_last_not_of(' ') + 1);
  text += row + "\n";
}

std::string written(int64_t ticks, const TimeScale &scale, Digits digits) {
  return digits == Digits::Short ? shortTime(static_cast<double>(ticks), scale)
                                 : decimalTime(ticks, scale);
}

} // namespace

int32_t chunkOf(const Problem &problem, const Action &action) {
  const std::vector<int32_t> &placement =
      problem.pipelines[action.pipeline].workers;
  if (problem.workers == std::ssize(placement))
    return 0;
  auto own = placement.begin() + action.stage;
  return static_cast<int32_t>(std::count(placement.begin(), own, *own));
}

std::string chunkMark(int32_t chunk) {
  return chunk == 0 ? "" : chunk == 1 ? "'" : "'" + std::to_string(chunk);
}

static std::string microBatchesOf(const Problem &problem,
                                  const Action &action) {
  std::string text = std::to_string(action.microBatch);
  int32_t last = action.microBatch + action.microBatches - 1;
  // Micro-batches 2 and 3 are "23" only if all micro-batches have one digit.
  // Otherwise "23" would look like micro-batch 23.
  bool digits = problem.microBatches() * problem.steps <= 10;
  if (action.microBatches > 1)
    return text + (action.microBatches == 2 && digits ? "" : "-") +
           std::to_string(last);
  if (action.parts <= 1)
    return text;
  // Parts are letters from a to z or, if there are more than 26, numbers.
  if (action.parts <= 26)
    return text + static_cast<char>('a' + action.part);
  return text + "." + std::to_string(action.part);
}

std::string microBatchText(const Problem &problem, const Action &action) {
  return microBatchesOf(problem, action) + chunkMark(chunkOf(problem, action));
}

std::string cellOf(const Problem &problem, const Action &action) {
  const char *letters =
      problem.pipelines[action.pipeline].up ? "fbiwr" : "FBIWR";
  return letters[static_cast<int>(action.kind)] +
         microBatchText(problem, action);
}

std::string nameOfMessage(const Problem &problem, const Action &action) {
  return (action.kind == Kind::Forward ? "activation " : "gradient ") +
         microBatchText(problem, action);
}

std::string describe(const Problem &problem, const Action &action,
                     const Occupation &occupation) {
  return (occupation.isSend ? "send " : "receive ") +
         nameOfMessage(problem, action) +
         (occupation.isSend ? " to P" : " from P") +
         std::to_string(occupation.peer);
}

std::string Timeline::axis() const { return slots ? "slot" : scale.unit->axis; }

std::span<const TimelineFormat> timelineFormats() {
  static constexpr std::array<TimelineFormat, 3> all = {{
      {"text", "the grid of the Chimera paper", renderText,
       renderTextSideBySide},
      {"svg", "a picture", renderSvg, renderSvgSideBySide},
      {"chrome-trace", "JSON for ui.perfetto.dev or chrome://tracing",
       renderChromeTrace, renderChromeTraceSideBySide},
  }};
  return all;
}

/// A wait or an update in the grid: "A1", "U1", "u1".
static std::string cellOf(const Problem &problem,
                          const SyncAndUpdate::Work &work) {
  const char *letter = !work.isUpdate()                       ? "A"
                       : problem.pipelines[*work.pipeline].up ? "u"
                                                              : "U";
  return letter + (work.stage ? std::to_string(*work.stage) : "");
}

/// The largest of 1, 2, 5, 10, 20, 50, … units that is no longer than any
/// action of `timeline`; in ticks, at least 1.
static int64_t roundColumn(const Timeline &timeline) {
  int64_t shortest = timeline.end();
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i)
      shortest = std::min(shortest, timeline.duration(w, i));
  int64_t column = 1;
  for (int64_t power = timeline.scale.perUnit; power <= shortest; power *= 10) {
    for (int64_t digit : {1, 2, 5})
      if (power <= shortest / digit)
        column = digit * power;
    if (power > shortest / 10)
      break;
  }
  return column;
}

/// The time of a column of the grid in ticks: one tick, or more if that would
/// be too many columns. 0 if no column is long enough.
static int64_t columnOf(const Timeline &timeline) {
  if (timeline.end() <= kMostColumns)
    return 1;
  if (timeline.slots)
    return 0;
  int64_t column = roundColumn(timeline);
  return (timeline.end() - 1) / column < kMostRounded ? column : 0;
}

/// A line that replaces a grid with too many columns.
static std::string tooWide(const Timeline &timeline) {
  int64_t columns = timeline.end(), most = kMostColumns;
  std::string unit = " slots";
  if (!timeline.slots) {
    const int64_t column = roundColumn(timeline);
    columns = 1 + (timeline.end() - 1) / column;
    most = kMostRounded;
    unit = " columns of " +
           roundedTime(static_cast<double>(column), timeline.scale) +
           ", for the shortest action";
  }
  return "(no grid: it would have " + std::to_string(columns) + unit +
         ", and at most " + std::to_string(most) +
         " are drawn: write a picture or a trace)\n";
}

/// The names of the grid's columns, and the head of their row.
static std::pair<std::vector<std::string>, std::string>
headOf(const Timeline &timeline, int64_t column) {
  const TimeScale &scale = timeline.scale;
  std::vector<std::string> names;
  std::string head = timeline.slots ? "slot" : "t";
  Magnitude magnitude{1, ""};
  if (column > 1) {
    magnitude = magnitudeOf(scale.units(static_cast<double>(timeline.end())),
                            *scale.unit);
    head += magnitude.name.empty() ? "" : " " + magnitude.name;
  }
  for (int64_t t = 0; t < timeline.end(); t += column) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g",
                  scale.units(static_cast<double>(t)) / magnitude.units);
    names.push_back(column > 1 ? text : decimalNumber(t, scale.perUnit));
  }
  return {std::move(names), std::move(head)};
}

/// The number of the column that begins nearest to `time`.
static int64_t nearestColumn(int64_t time, int64_t column) {
  return (time + column / 2) / column;
}

std::string renderGrid(const Timeline &timeline) {
  const auto &[name, title, problem, schedule, timing, slots, scale, lineWidth,
               picture, syncAndUpdate, step, occupations, isPart] = timeline;
  const int64_t column = columnOf(timeline);
  if (column == 0)
    return tooWide(timeline);
  std::vector<std::vector<std::string>> rows;
  auto [head, headName] = headOf(timeline, column);
  bool isRounded = false;
  size_t width = 0;
  for (const std::string &time : head)
    width = std::max(width, time.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back(head.size(), ".");
    auto fill = [&](int64_t begin, int64_t end, const char *cell) {
      isRounded |= begin % column != 0 || end % column != 0;
      begin = nearestColumn(begin, column);
      end = std::min<int64_t>(nearestColumn(end, column), std::ssize(row));
      if (begin < end)
        std::fill(row.begin() + begin, row.begin() + end, cell);
      return begin < end ? begin : -1;
    };
    auto put = [&](int64_t begin, int64_t end, std::string label) {
      int64_t first = fill(begin, end, "=");
      if (first < 0)
        return;
      width = std::max(width, label.size());
      row[first] = std::move(label);
    };
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      int64_t start = timing.starts[w][i];
      put(start, start + timeline.duration(w, i), cellOf(problem, action));
    }
    if (occupations)
      for (const Occupation &occupation : (*occupations)[w])
        fill(occupation.begin, occupation.end, occupation.isSend ? ">" : "<");
    if (syncAndUpdate)
      for (const SyncAndUpdate::Work &work : syncAndUpdate->work[w])
        put(work.begin, work.end, cellOf(problem, work));
  }
  auto nameOf = [](size_t w) { return "P" + std::to_string(w); };
  size_t headWidth = std::max(
      {nameOf(rows.size() - 1).size() + 1, headName.size() + 1, size_t{5}});
  ++width; // one blank after each cell
  size_t columns = head.size();
  if (lineWidth > 0) {
    // `room` is one character larger than the line, because the blank after the
    // last cell of a line is not printed.
    size_t room = lineWidth + 1 - std::min(lineWidth, headWidth);
    columns = std::max(room / width, size_t{1});
  }
  std::string text;
  for (size_t begin = 0; begin < head.size(); begin += columns) {
    size_t count = std::min(columns, head.size() - begin);
    text += begin > 0 ? "\n" : "";
    appendRow(text, headName, headWidth, std::span(head).subspan(begin, count),
              width);
    for (size_t w = 0; w < rows.size(); ++w)
      appendRow(text, nameOf(w), headWidth,
                std::span(rows[w]).subspan(begin, count), width);
  }
  if (column > 1)
    text += "(a column is " + shortTime(static_cast<double>(column), scale) +
            (isRounded ? "; starts and ends are rounded to columns" : "") +
            ")\n";
  return text;
}

namespace {

/// The marks of a grid that not every grid has, each with an explanation.
class GridMarks {
public:
  explicit GridMarks(const Problem &problem) : problem(problem) {}

  void add(const Action &action) {
    if (problem.pipelines[action.pipeline].up)
      put(Mark::Up, "small letters: the copy of the model whose activations go "
                    "up the workers");
    if (action.kind == Kind::InputGradient)
      put(Mark::InputGradient, "I: input gradient");
    if (action.kind == Kind::WeightGradient)
      put(Mark::WeightGradient, "W: weight gradient");
    if (action.kind == Kind::Recompute)
      put(Mark::Recompute, "R: recompute");
    if (action.microBatches > 1)
      put(Mark::Range,
          cellOf(problem, action) + ": of micro-batches " +
              std::to_string(action.microBatch) + " to " +
              std::to_string(action.microBatch + action.microBatches - 1));
    if (action.parts > 1)
      put(Mark::Part, cellOf(problem, action) + ": part " +
                          std::to_string(action.part + 1) + " of " +
                          std::to_string(action.parts));
    const int32_t chunk = chunkOf(problem, action);
    if (chunk == 1)
      put(Mark::SecondChunk, chunkMark(1) + ": on the worker's second stage");
    if (chunk > 1)
      put(Mark::LaterChunk, chunkMark(2) + ": on its third stage");
  }

  void add(const SyncAndUpdate::Work &work) {
    const std::string cell = cellOf(problem, work);
    if (work.isUpdate())
      put(Mark::Update,
          cell + ": update of stage " + std::to_string(work.stage.value_or(0)));
    else
      put(work.stage ? Mark::Wait : Mark::TiedWait,
          cell + ": wait for the " + nameOfAllReduce(work.stage));
  }

  std::string text() const {
    std::string all;
    for (const auto &[mark, explanation] : explanations)
      all += (all.empty() ? "" : "; ") + explanation;
    return all;
  }

private:
  /// In the order in which the text explains them.
  enum class Mark {
    Up,
    InputGradient,
    WeightGradient,
    Recompute,
    Range,
    Part,
    SecondChunk,
    LaterChunk,
    Wait,
    TiedWait,
    Update
  };

  void put(Mark mark, const std::string &explanation) {
    explanations.try_emplace(mark, explanation);
  }

  const Problem &problem;
  std::map<Mark, std::string> explanations;
};

} // namespace

std::string describeMarks(const Timeline &timeline) {
  const int64_t column = columnOf(timeline);
  if (column == 0)
    return {};
  GridMarks marks(timeline.problem);
  for (const std::vector<Action> &actions : timeline.schedule.workers)
    for (const Action &action : actions)
      marks.add(action);
  if (timeline.syncAndUpdate)
    for (const auto &all : timeline.syncAndUpdate->work)
      for (const SyncAndUpdate::Work &work : all)
        if (nearestColumn(work.begin, column) < nearestColumn(work.end, column))
          marks.add(work);
  return marks.text();
}

std::string describeTimes(const Problem &problem, const TimeScale &scale,
                          Digits digits) {
  std::string times;
  auto addRange = [&](const char *name, int64_t StageCost::*cost) {
    auto [least, most] = std::ranges::minmax(problem.stages, {}, cost);
    times += (times.empty() ? "" : ", ") + std::string(name) + " " +
             written(least.*cost, scale, digits);
    if (least.*cost != most.*cost)
      times += " to " + written(most.*cost, scale, digits);
  };
  addRange("forward", &StageCost::forward);
  if (problem.splits.anyWhole())
    addRange("backward", &StageCost::backward);
  if (problem.splits.any()) {
    addRange("input gradient", &StageCost::inputGradient);
    addRange("weight gradient", &StageCost::weightGradient);
  }
  if (!problem.recompute.empty())
    addRange("recompute", &StageCost::recompute);
  auto add = [&](const char *name, const MessageTime &of) {
    times += std::string(", ") + name + " " + written(of.alpha, scale, digits);
    if (of.beta > 0)
      times += " and " + written(of.beta, scale, digits) + " for each " +
               std::to_string(of.betaBytes) + " bytes";
  };
  for (const LinkClass *links : problem.classes()) {
    const Link &link = links->link;
    add(links == &problem ? "p2p" : "p2p within a node", link);
    if (link.send.alpha > 0 || link.send.beta > 0)
      add("send", link.send);
    if (link.receive.alpha > 0 || link.receive.beta > 0)
      add("receive", link.receive);
  }
  if (sharesCores(problem))
    times += ", " + std::to_string(problem.node->cores) + " cores for each " +
             std::to_string(problem.node->devices) + " devices";
  return times;
}

std::string describeSteps(const Problem &problem, const Schedule &schedule,
                          const TimeScale &scale, Digits digits) {
  if (!stepsOverlap(problem.updates))
    return {};
  SteadyState steady = steadyState(problem, schedule);
  // A period is a mean, so it may be a fraction of a tick.
  char mean[32];
  std::snprintf(mean, sizeof mean, "%.10g", scale.units(steady.period));
  std::string period = mean;
  if (steady.period == std::floor(steady.period))
    period = decimalNumber(static_cast<int64_t>(steady.period), scale.perUnit);
  return std::to_string(problem.steps) +
         " steps, which overlap; in the steady state one takes " +
         (digits == Digits::Short ? shortTime(steady.period, scale)
                                  : withUnit(period, scale)) +
         ", bubble " + percent(steady.bubbleRatio);
}

/// The values of all workers, one after another. If there are more than 32
/// workers, only the least and the largest value.
template <typename T, typename TextOf>
static std::string perWorker(const std::vector<T> &values, TextOf textOf) {
  constexpr size_t kMostValues = 32;
  if (values.size() > kMostValues) {
    auto [least, most] = std::ranges::minmax(values);
    return least == most ? textOf(least) + " each"
                         : textOf(least) + " to " + textOf(most);
  }
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : " ") + textOf(value);
  return text;
}

/// The times of all workers in the form of `perWorker`, with the unit once at
/// the end.
static std::string timesPerWorker(const std::vector<int64_t> &times,
                                  const TimeScale &scale) {
  auto most = static_cast<double>(std::ranges::max(times));
  Magnitude magnitude{1, ""};
  if (scale.unit->isDuration)
    magnitude = magnitudeOf(scale.units(most), *scale.unit);
  if (magnitude.units == 1)
    return withUnit(perWorker(times,
                              [&](int64_t time) {
                                return decimalNumber(time, scale.perUnit);
                              }),
                    scale);
  return perWorker(times,
                   [&](int64_t time) {
                     char text[32];
                     std::snprintf(text, sizeof text, "%.4g",
                                   scale.units(static_cast<double>(time)) /
                                       magnitude.units);
                     return std::string(text);
                   }) +
         " " + magnitude.name;
}

std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots, const TimeScale &scale) {
  // Round durations: the costs of a real model are in nanoseconds, so its times
  // may have ten digits.
  const Digits digits = scale.unit->isDuration ? Digits::Short : Digits::All;
  return "makespan " + written(timing.makespan, scale, digits) + " (" +
         (slots ? "one slot each" : describeTimes(problem, scale, digits)) +
         ")\nbubble " + percent(timing.bubbleRatio()) +
         " of the makespan; idle per worker: " +
         timesPerWorker(timing.idle, scale) +
         "\npeak activations per worker: " +
         perWorker(timing.peakActivations,
                   [](int32_t count) { return std::to_string(count); }) +
         "\n";
}

std::string nameOfAllReduce(std::optional<int32_t> stage) {
  return "all-reduce of " +
         (stage ? "stage " + std::to_string(*stage) : "tied weights");
}

std::string describeStep(const Timeline &timeline) {
  if (!timeline.syncAndUpdate)
    return {};
  const StepTime &step = timeline.step;
  auto time = [&](double ticks) { return shortTime(ticks, timeline.scale); };
  return "step " + time(step.total) + " = actions " + time(step.actions) +
         " + un-overlapped all-reduce " + time(step.allReduce) + " + updates " +
         time(step.update) + " (mean of many steps)";
}

std::string describeOccupations(const Timeline &timeline) {
  if (!timeline.occupations || !hasOccupations(*timeline.occupations))
    return {};
  return "messages (> send, < receive) occupy workers for " +
         timesPerWorker(totalsOf(*timeline.occupations), timeline.scale) +
         " of their idle time";
}

std::string renderText(std::span<const Timeline> timelines) {
  std::string text;
  for (const Timeline &timeline : timelines) {
    text += timeline.title + "\n";
    text += renderGrid(timeline);
    if (std::string marks = describeMarks(timeline); !marks.empty())
      text += "(" + marks + ")\n";
    text += renderSummary(timeline.problem, timeline.timing, timeline.slots,
                          timeline.scale);
    if (std::string occupied = describeOccupations(timeline); !occupied.empty())
      text += occupied + "\n";
    if (std::string steps =
            describeSteps(timeline.problem, timeline.schedule, timeline.scale);
        !steps.empty())
      text += steps + "\n";
    if (timeline.syncAndUpdate)
      text += describeStep(timeline) + "\n";
  }
  return text;
}

} // namespace chimera::schedule
