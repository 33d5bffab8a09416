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

namespace chimera::schedule {

namespace {

/// The most columns of a grid. With 32 workers, these already fill thousands of
/// lines.
constexpr int64_t kMostColumns = 1000;

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
                                 : exactTime(ticks, scale);
}

/// A line in the place of a grid with too many columns.
std::string tooWide(int64_t columns) {
  return "(no grid: it would have " + std::to_string(columns) +
         " columns, more than " + std::to_string(kMostColumns) +
         ": write a picture or a trace, or choose times that are smaller "
         "multiples of one time)\n";
}

} // namespace

/// The number of the action's chunk: its stage among the worker's stages of the
/// pipeline.
static int32_t chunkOf(const Problem &problem, const Action &action) {
  const std::vector<int32_t> &place =
      problem.pipelines[action.pipeline].workers;
  if (problem.workers == std::ssize(place))
    return 0;
  auto own = place.begin() + action.stage;
  return static_cast<int32_t>(std::count(place.begin(), own, *own));
}

/// The mark of a chunk: nothing, ', '2, '3, …
static std::string chunkMark(int32_t chunk) {
  return chunk == 0 ? "" : chunk == 1 ? "'" : "'" + std::to_string(chunk);
}

static std::string microBatchesOf(const Problem &problem,
                                  const Action &action) {
  std::string text = std::to_string(action.microBatch);
  int32_t last = action.microBatch + action.microBatches - 1;
  // Two micro-batches are "23" only if all have one digit. Otherwise it would
  // look like micro-batch 23.
  bool digits = problem.microBatches() * problem.steps <= 10;
  if (action.microBatches > 1)
    return text + (action.microBatches == 2 && digits ? "" : "-") +
           std::to_string(last);
  if (action.parts <= 1)
    return text;
  // Parts are a to z; with more than 26, numbers.
  if (action.parts <= 26)
    return text + static_cast<char>('a' + action.part);
  return text + "." + std::to_string(action.part);
}

std::string coverOf(const Problem &problem, const Action &action) {
  return microBatchesOf(problem, action) + chunkMark(chunkOf(problem, action));
}

std::string cellOf(const Problem &problem, const Action &action) {
  const char *letters =
      problem.pipelines[action.pipeline].up ? "fbiwr" : "FBIWR";
  return letters[static_cast<int>(action.kind)] + coverOf(problem, action);
}

std::string nameOfMessage(const Problem &problem, const Action &action) {
  return (action.kind == Kind::Forward ? "activation " : "gradient ") +
         coverOf(problem, action);
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
      {"text", "the grid of the Chimera paper", renderText, renderTextBeside},
      {"svg", "a picture", renderSvg, renderSvgBeside},
      {"chrome-trace", "JSON for ui.perfetto.dev or chrome://tracing",
       renderChromeTrace, renderChromeTraceBeside},
  }};
  return all;
}

/// A wait or an update in the grid: "A1", "U1", "u1".
static std::string cellOf(const Problem &problem, const Tail::Work &work) {
  const char *letter = !work.isUpdate()                       ? "A"
                       : problem.pipelines[*work.pipeline].up ? "u"
                                                              : "U";
  return letter + (work.stage ? std::to_string(*work.stage) : "");
}

std::string renderGrid(const Timeline &timeline) {
  const auto &[name, title, problem, schedule, timing, slots, scale, lineWidth,
               tail, step, occupations, isPart] = timeline;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head;
  size_t width = 0;
  for (int64_t t = 0; t < timeline.end(); ++t) {
    head.push_back(exactNumber(t, scale.perUnit));
    width = std::max(width, head.back().size());
  }
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back(timeline.end(), ".");
    auto put = [&](int64_t begin, int64_t end, std::string label) {
      std::fill(row.begin() + begin, row.begin() + end, "=");
      width = std::max(width, label.size());
      row[begin] = std::move(label);
    };
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      int64_t start = timing.starts[w][i];
      put(start, start + timeline.duration(w, i), cellOf(problem, action));
    }
    if (occupations)
      for (const Occupation &occupation : (*occupations)[w])
        std::fill(row.begin() + occupation.begin, row.begin() + occupation.end,
                  occupation.isSend ? ">" : "<");
    if (tail)
      for (const Tail::Work &work : tail->work[w])
        put(work.begin, work.end, cellOf(problem, work));
  }
  auto nameOf = [](size_t w) { return "P" + std::to_string(w); };
  size_t headWidth = std::max(nameOf(rows.size() - 1).size() + 1, size_t{5});
  ++width; // one blank after each cell
  size_t columns = head.size();
  if (lineWidth > 0) {
    // The blank after the last cell of a line is not printed.
    size_t room = lineWidth + 1 - std::min(lineWidth, headWidth);
    columns = std::max(room / width, size_t{1});
  }
  std::string text;
  for (size_t begin = 0; begin < head.size(); begin += columns) {
    size_t count = std::min(columns, head.size() - begin);
    text += begin > 0 ? "\n" : "";
    appendRow(text, slots ? "slot" : "t", headWidth,
              std::span(head).subspan(begin, count), width);
    for (size_t w = 0; w < rows.size(); ++w)
      appendRow(text, nameOf(w), headWidth,
                std::span(rows[w]).subspan(begin, count), width);
  }
  return text;
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
    period = exactNumber(static_cast<int64_t>(steady.period), scale.perUnit);
  return std::to_string(problem.steps) +
         " steps, which overlap; in the steady state one takes " +
         (digits == Digits::Short ? shortTime(steady.period, scale)
                                  : withUnit(period, scale)) +
         ", bubble " + percent(steady.bubbleRatio);
}

std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots, const TimeScale &scale) {
  std::string idle;
  for (int64_t time : timing.idle)
    idle += (idle.empty() ? "" : " ") + exactNumber(time, scale.perUnit);
  return "makespan " + exactTime(timing.makespan, scale) + " (" +
         (slots ? "one slot each" : describeTimes(problem, scale)) +
         ")\nbubble " + percent(timing.bubbleRatio()) +
         " of the makespan; idle per worker: " + withUnit(idle, scale) +
         "\npeak activations per worker: " + join(timing.peakActivations) +
         "\n";
}

std::string nameOfAllReduce(std::optional<int32_t> stage) {
  return "all-reduce of " + (stage ? "stage " + std::to_string(*stage)
                                   : "what first and last stage share");
}

std::string describeStep(const Timeline &timeline) {
  if (!timeline.tail)
    return {};
  const StepTime &step = timeline.step;
  auto time = [&](double ticks) { return shortTime(ticks, timeline.scale); };
  return "step " + time(step.total) + ", of it actions " + time(step.actions) +
         ", un-overlapped all-reduce " + time(step.allReduce) + ", updates " +
         time(step.update) + ", on average of many";
}

std::string describeOccupations(const Timeline &timeline) {
  if (!timeline.occupations || !areAny(*timeline.occupations))
    return {};
  std::string times;
  for (int64_t time : totalsOf(*timeline.occupations))
    times +=
        (times.empty() ? "" : " ") + exactNumber(time, timeline.scale.perUnit);
  return "messages (> send, < receive) occupy workers for " +
         withUnit(times, timeline.scale) + " of their idle time";
}

std::string renderText(std::span<const Timeline> timelines) {
  std::string text;
  for (const Timeline &timeline : timelines) {
    text += timeline.title + "\n";
    text += timeline.end() > kMostColumns ? tooWide(timeline.end())
                                          : renderGrid(timeline);
    text += renderSummary(timeline.problem, timeline.timing, timeline.slots,
                          timeline.scale);
    if (std::string occupied = describeOccupations(timeline); !occupied.empty())
      text += occupied + "\n";
    if (std::string steps =
            describeSteps(timeline.problem, timeline.schedule, timeline.scale);
        !steps.empty())
      text += steps + "\n";
    if (timeline.tail)
      text += describeStep(timeline) + "\n";
  }
  return text;
}

} // namespace chimera::schedule
