//===- Report.cpp - What a schedule costs ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Report.h"

#include "compiler/schedule/DeviceOrder.h"
#include "compiler/schedule/Memory.h"
#include "compiler/schedule/Recompute.h"

#include <algorithm>
#include <limits>

namespace chimera::schedule {

double Report::internalBubbleRatio() const {
  return static_cast<double>(timing.internalBubble()) /
         static_cast<double>(timing.internalBubble() + timing.load());
}

/// Adds the all-reduces and by how much each policy lets them delay the end of
/// the step. Adds nothing where they take no time.
static void addAllReduces(Report &report, const Schedule &schedule) {
  const Problem &problem = report.problem;
  if (stepsOverlap(problem.updates))
    return;
  std::vector<StageReduce> reduces =
      stageReduces(problem, schedule, report.timing);
  std::vector<int64_t> times, buckets;
  for (const StageReduce &reduce : reduces) {
    int64_t members = std::ssize(reduce.parts) * report.width;
    buckets.push_back(members > 1 ? reduce.buckets : 0);
    int64_t &time = times.emplace_back();
    // A message of theirs takes what any does, until its receiver has it.
    for (const MessageTime &part :
         {MessageTime(problem.link), problem.link.send, problem.link.receive})
      if (__builtin_add_overflow(
              time, allReduceTime(part, members, reduce.bytes, reduce.buckets),
              &time))
        time = std::numeric_limits<int64_t>::max();
  }
  if (std::ranges::max(times) == 0)
    return;
  for (auto [name, policy] : kPolicies)
    report.unoverlapped.push_back(
        std::ranges::max(reduceEnds(problem, schedule, report.timing, reduces,
                                    times, policy)) -
        report.timing.makespan);
  report.allReduces.resize(problem.stages.size());
  report.buckets.resize(problem.stages.size());
  for (size_t i = 0; i < reduces.size(); ++i) {
    const StageReduce &reduce = reduces[i];
    if (!reduce.stage) {
      report.tiedAllReduce = times[i];
      report.tiedBuckets = buckets[i];
      continue;
    }
    report.allReduces[*reduce.stage] = times[i];
    report.buckets[*reduce.stage] = buckets[i];
    if (std::ranges::any_of(reduce.parts, &StageReduce::Part::isIdle))
      report.earlyStages.push_back(*reduce.stage);
  }
  std::ranges::sort(report.earlyStages);
}

/// Fills in the receive window, its bytes and its makespans.
static void describeWindow(const Windows &windows, int32_t given,
                           Report &report) {
  bool widened = given == 0;
  int32_t window = widened ? windows.choose() : given;
  report.receiveWindow = window;
  report.receiveBytes = windows.bytes(window, widened);
  if (!widened && given < windows.needed())
    report.notes.push_back("a receive window of " + std::to_string(given) +
                           " is too small: messages overtake each other, " +
                           std::to_string(windows.needed()) + " are needed");
  if (widened && window > 1 && !report.problem.memoryCaps.empty())
    report.notes.push_back("a program whose workers would hold more than their "
                           "caps has a smaller receive window");
  const Link &link = report.problem.link;
  if (link.alpha == 0 && link.beta == 0)
    return;
  auto add = [&](int32_t size) {
    Timing timing = windows.simulate(size, widened);
    if (timing.complete)
      report.windowMakespans.emplace_back(size, timing.makespan);
  };
  // Doubled each time: there may be many.
  for (int64_t size = 1; size < window; size *= 2)
    add(static_cast<int32_t>(size));
  add(window);
}

Report makeReport(std::string name, const Scheme *scheme,
                  const Options &options, int32_t width, const Problem &problem,
                  const Schedule &schedule, const TimeScale &scale,
                  int32_t receiveWindow) {
  Report report;
  report.name = std::move(name);
  report.schedule = scheme ? scheme->name : "";
  report.scheme = scheme;
  report.options = options;
  report.width = width;
  report.problem = problem;
  report.scale = scale;
  report.timing = simulate(problem, schedule);
  report.residentBytes = residentBytes(problem);
  if (auto excess = capExcess(problem, schedule))
    report.overCap = describe(*excess, schedule);
  // Orders that exceed the caps may beat those that hold them.
  Problem bounded = problem;
  if (!report.overCap.empty())
    bounded.memoryCaps.clear();
  report.bounds = bounds(bounded);
  describeWindow(Windows(problem, schedule), receiveWindow, report);
  report.deviceOrderMakespan =
      makespanInDeviceOrder(problem, schedule, report.timing);
  addAllReduces(report, schedule);
  if (stepsOverlap(problem.updates))
    report.steady = steadyState(problem, schedule);
  if (!problem.recompute.empty()) {
    Problem keeping = problem;
    keeping.recompute.clear();
    Schedule kept = removeRecompute(schedule);
    report.kept = simulate(keeping, kept);
    if (report.steady)
      report.keptSteady = steadyState(keeping, kept);
  }

  if (!problem.memoryCaps.empty())
    report.notes.push_back(
        "a program takes at least the peak bytes: caps are held against its "
        "arena and stashes, which may take more");
  if (!scheme) {
    report.notes.push_back(
        "the order is of no known scheme, so no formula is compared");
    return report;
  }
  if (scheme->note)
    if (std::string note = scheme->note(problem); !note.empty())
      report.notes.push_back(std::move(note));
  if (std::optional<Sizes> sizes = sizesOf(problem, options)) {
    if ((report.bubbleFormula = findBubbleFormula(*scheme, *sizes)))
      report.bubbleValue = report.bubbleFormula->value(*sizes);
    if (report.bubbleFormula && sizes->recomputed)
      report.notes.push_back(
          "in the bubble's formula b is a recompute and a backward");
    if ((report.peakFormula = findPeakFormula(*scheme, *sizes)))
      report.peakValue = report.peakFormula->value(*sizes);
  }
  return report;
}

} // namespace chimera::schedule
