//===- Timeline.cpp - A schedule as text or picture -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timeline.h"

#include "compiler/schedule/ChromeTrace.h"
#include "compiler/schedule/Steps.h"
#include "compiler/schedule/Svg.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace chimera::schedule {

namespace {

/// Grids wider than this many columns are no longer read.
constexpr int64_t kWidest = 4096;

std::string label(const Problem &problem, const Action &action) {
  const char *letters =
      problem.pipelines[action.pipeline].up ? "fbiwr" : "FBIWR";
  return letters[static_cast<int>(action.kind)] + coverOf(problem, action);
}

void appendRow(std::string &text, const std::string &head,
               const std::vector<std::string> &cells, size_t width) {
  std::string row = head;
  row.resize(std::max(row.size() + 1, size_t{5}), ' ');
  for (const std::string &cell : cells) {
    row += cell;
    row.append(width - cell.size(), ' ');
  }
  row.erase(row.find_last_not_of(' ') + 1);
  text += row + "\n";
}

/// "forward 3", or "forward 3 to 5".
std::string range(const char *name, const Problem &problem,
                  int64_t StageCost::*cost) {
  auto [least, most] = std::ranges::minmax(problem.stages, {}, cost);
  std::string text = std::string(name) + " " + std::to_string(least.*cost);
  if (least.*cost != most.*cost)
    text += " to " + std::to_string(most.*cost);
  return text;
}

} // namespace

std::string coverOf(const Problem &problem, const Action &action) {
  std::string text = std::to_string(action.microBatch);
  int32_t last = action.microBatch + action.microBatches - 1;
  // 23 beside 2-3 would be read as two and three.
  bool digits = problem.microBatches() * problem.steps <= 10;
  if (action.microBatches > 1)
    return text + (action.microBatches == 2 && digits ? "" : "-") +
           std::to_string(last);
  if (action.parts <= 1)
    return text;
  // a … z, then the number.
  if (action.parts <= 26)
    return text + static_cast<char>('a' + action.part);
  return text + "." + std::to_string(action.part);
}

std::span<const TimeUnit> timeUnits() {
  static constexpr std::array<TimeUnit, 5> all = {{
      {"none", "costs have no unit; a chrome trace shows one as 1 us", "time",
       false, 1},
      {"slot", "costs are in slots of equal length, shown likewise",
       "time in slots", false, 1},
      {"flop", "costs are in floating-point operations, shown likewise",
       "time in flop", false, 1},
      {"us", "costs are in microseconds", "time in us", true, 1},
      {"ns", "costs are in nanoseconds", "time in ns", true, 1e-3},
  }};
  return all;
}

const TimeUnit *findTimeUnit(std::string_view name) {
  for (const TimeUnit &unit : timeUnits())
    if (name == unit.name)
      return &unit;
  return nullptr;
}

std::string timeUnitNames() {
  std::string names;
  for (const TimeUnit &unit : timeUnits())
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

std::string Timeline::axis() const { return slots ? "slot" : unit->axis; }

std::span<const TimelineFormat> timelineFormats() {
  static constexpr std::array<TimelineFormat, 3> all = {{
      {"text", "the grid of the Chimera paper", renderText},
      {"svg", "a picture", renderSvg},
      {"chrome-trace", "JSON for ui.perfetto.dev or chrome://tracing",
       renderChromeTrace},
  }};
  return all;
}

std::string renderGrid(const Problem &problem, const Schedule &schedule,
                       const Timing &timing, bool slots) {
  std::vector<std::vector<std::string>> rows;
  size_t width = std::to_string(timing.makespan - 1).size();
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    std::vector<std::string> &row = rows.emplace_back(timing.makespan, ".");
    for (size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action &action = schedule.workers[w][i];
      int64_t start = timing.starts[w][i];
      int64_t cost = slots ? 1 : problem.cost(action);
      row[start] = label(problem, action);
      width = std::max(width, row[start].size());
      for (int64_t t = start + 1; t < start + cost; ++t)
        row[t] = "=";
    }
  }
  std::vector<std::string> head;
  for (int64_t t = 0; t < timing.makespan; ++t)
    head.push_back(std::to_string(t));
  std::string text;
  appendRow(text, slots ? "slot" : "t", head, width + 1);
  for (size_t w = 0; w < rows.size(); ++w)
    appendRow(text, "P" + std::to_string(w), rows[w], width + 1);
  return text;
}

std::string describeTimes(const Problem &problem) {
  std::string times = range("forward", problem, &StageCost::forward);
  if (problem.splitBackward)
    times +=
        ", " + range("input gradient", problem, &StageCost::inputGradient) +
        ", " + range("weight gradient", problem, &StageCost::weightGradient);
  else
    times += ", " + range("backward", problem, &StageCost::backward);
  if (!problem.recompute.empty())
    times += ", " + range("recompute", problem, &StageCost::recompute);
  auto add = [&](const char *name, const MessageTime &of) {
    times += std::string(", ") + name + " " + std::to_string(of.alpha);
    if (of.beta > 0)
      times += " and " + std::to_string(of.beta) + " for each " +
               std::to_string(of.betaBytes) + " bytes";
  };
  add("p2p", problem.link);
  const MessageTime &send = problem.link.send, &receive = problem.link.receive;
  if (send.alpha > 0 || send.beta > 0)
    add("send", send);
  if (receive.alpha > 0 || receive.beta > 0)
    add("receive", receive);
  return times;
}

static std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

std::string describeSteps(const Problem &problem, const Schedule &schedule) {
  if (problem.updates == Updates::Flush)
    return {};
  SteadyState steady = steadyState(problem, schedule);
  char period[32];
  std::snprintf(period, sizeof period, "%.10g", steady.period);
  return std::to_string(problem.steps) +
         " steps, which overlap; in the steady state one takes " + period +
         ", bubble " + percent(steady.bubbleRatio);
}

std::string renderSummary(const Problem &problem, const Timing &timing,
                          bool slots) {
  return "makespan " + std::to_string(timing.makespan) + " (" +
         (slots ? "one slot each" : describeTimes(problem)) + ")\nbubble " +
         percent(timing.bubbleRatio()) +
         " of the makespan; idle per worker: " + join(timing.idle) +
         "\npeak activations per worker: " + join(timing.peakActivations) +
         "\n";
}

std::string renderText(std::span<const Timeline> timelines) {
  std::string text;
  for (const Timeline &timeline : timelines) {
    text += timeline.title + "\n";
    if (timeline.timing.makespan > kWidest)
      text += "(a grid of " + std::to_string(timeline.timing.makespan) +
              " columns is not printed; give smaller times or format=svg)\n";
    else
      text += renderGrid(timeline.problem, timeline.schedule, timeline.timing,
                         timeline.slots);
    text += renderSummary(timeline.problem, timeline.timing, timeline.slots);
    if (std::string steps = describeSteps(timeline.problem, timeline.schedule);
        !steps.empty())
      text += steps + "\n";
  }
  return text;
}

} // namespace chimera::schedule
