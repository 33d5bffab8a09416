//===- Timeline.cpp - A schedule as text or picture -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/Timeline.h"

#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/simulate/SteadyState.h"
#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace chimera::schedule {

namespace {

std::string written(int64_t ticks, const TimeScale &scale, Digits digits) {
  return digits == Digits::Short ? shortTime(static_cast<double>(ticks), scale)
                                 : decimalTime(ticks, scale);
}

} // namespace

Chunks::Chunks(const Problem &problem) {
  if (problem.workers == std::ssize(problem.stages))
    return;
  for (const Pipeline &pipeline : problem.pipelines) {
    std::vector<int32_t> counts(problem.workers);
    std::vector<int32_t> &ofStages = numbers.emplace_back();
    for (int32_t worker : pipeline.workers)
      ofStages.push_back(counts[worker]++);
  }
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

std::string microBatchText(const Timeline &timeline, const Action &action) {
  return microBatchesOf(timeline.problem, action) +
         chunkMark(timeline.chunks.numberOf(action));
}

std::string cellOf(const Timeline &timeline, const Action &action) {
  const bool up = timeline.problem.pipelines[action.pipeline].up;
  const char letter = rowOf(action.kind).letter;
  return static_cast<char>(up ? letter - 'A' + 'a' : letter) +
         microBatchText(timeline, action);
}

std::string nameOfMessage(const Timeline &timeline, const Action &action) {
  return (action.kind == Kind::Forward ? "activation " : "gradient ") +
         microBatchText(timeline, action);
}

std::string describe(const Timeline &timeline, const Action &action,
                     const Occupation &occupation) {
  return (occupation.isSend ? "send " : "receive ") +
         nameOfMessage(timeline, action) +
         (occupation.isSend ? " to P" : " from P") +
         std::to_string(occupation.peer);
}

std::string Timeline::axis() const { return slots ? "slot" : scale.unit->axis; }

std::string describeTimes(const Problem &problem, const TimeScale &scale,
                          Digits digits) {
  std::string times;
  auto addRange = [&](const char *name, auto cost) {
    auto [leastOf, mostOf] = std::ranges::minmax(problem.stages, {}, cost);
    const int64_t least = std::invoke(cost, leastOf),
                  most = std::invoke(cost, mostOf);
    times += (times.empty() ? "" : ", ") + std::string(name) + " " +
             written(least, scale, digits);
    if (least != most)
      times += " to " + written(most, scale, digits);
  };
  addRange("forward", &StageCost::forward);
  if (std::ranges::any_of(problem.stages, [](const StageCost &cost) {
        return cost.pairedForward.has_value();
      }))
    addRange("paired forward",
             [](const StageCost &cost) { return cost.pairedForwardTime(); });
  if (problem.splits.anyWhole())
    addRange("backward", &StageCost::backward);
  if (problem.splits.any()) {
    addRange("input gradient", &StageCost::inputGradient);
    addRange("weight gradient", &StageCost::weightGradient);
    if (std::ranges::any_of(problem.stages, [](const StageCost &cost) {
          return cost.joinedWeightGradient.has_value();
        }))
      addRange("joined weight gradient", [](const StageCost &cost) {
        return cost.joinedWeightGradientTime();
      });
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

std::string nameOfAllReduce(std::optional<int32_t> stage, bool isNorm) {
  return "all-reduce of " + (stage    ? "stage " + std::to_string(*stage)
                             : isNorm ? "the norm"
                                      : "tied weights");
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
  if (!timeline.occupations)
    return {};
  const std::vector<int64_t> totals = totalsOf(*timeline.occupations);
  if (std::ranges::max(totals) == 0)
    return {};
  return "messages (> send, < receive) occupy workers for " +
         timesPerWorker(totals, timeline.scale) + " of their idle time";
}

} // namespace chimera::schedule
