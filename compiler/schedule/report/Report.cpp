//===- Report.cpp - Costs of a schedule, with formulas and bounds ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/Report.h"

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/SteadyState.h"
#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>

namespace chimera::schedule {

double Report::internalBubbleRatio() const {
  return static_cast<double>(timing.internalBubble()) /
         static_cast<double>(timing.internalBubble() + timing.maxLoad());
}

std::vector<int32_t> Report::overActivationCap() const {
  std::vector<int32_t> over;
  for (size_t w = 0; w < timing.peakActivations.size(); ++w)
    if (activationCap && timing.peakActivations[w] > *activationCap)
      over.push_back(static_cast<int32_t>(w));
  return over;
}

int64_t Report::samples() const {
  return microBatchSize * problem.microBatches() * problem.width;
}

double Report::busyShare() const {
  int64_t steps = stepsOverlap(problem.updates) ? problem.steps : 1, busy = 0;
  for (int64_t time : timing.busy)
    busy += time;
  return static_cast<double>(busy) /
         (step.total * static_cast<double>(steps * problem.workers));
}

/// Sets the fields of the report from `allReduces` to `earlyStages`. Leaves
/// them empty if steps overlap or if all-reduces take no time.
static void addAllReduces(Report &report, const Schedule &schedule) {
  const Problem &problem = report.problem;
  if (stepsOverlap(problem.updates))
    return;
  std::vector<GradientReduce> reduces =
      gradientReduces(problem, schedule, report.timing);
  std::vector<int64_t> times, buckets;
  for (const GradientReduce &reduce : reduces) {
    std::vector<int32_t> workers = reduce.workers();
    buckets.push_back(
        replicasOf(problem, std::ssize(workers)) > 1 ? reduce.buckets : 0);
    times.push_back(
        allReduceTime(problem, workers, reduce.bytes, reduce.buckets));
  }
  if (std::ranges::max(times) == 0)
    return;
  for (auto [name, policy] : kPolicies) {
    Problem other = problem;
    other.policy = policy;
    report.unoverlapped.push_back(stepTime(other, schedule).allReduce);
  }
  report.allReduces.resize(problem.stages.size());
  report.buckets.resize(problem.stages.size());
  for (size_t i = 0; i < reduces.size(); ++i) {
    const GradientReduce &reduce = reduces[i];
    if (!reduce.stage) {
      report.tiedAllReduce = times[i];
      report.tiedBuckets = buckets[i];
      continue;
    }
    report.allReduces[*reduce.stage] = times[i];
    report.buckets[*reduce.stage] = buckets[i];
    if (std::ranges::any_of(reduce.contributions,
                            &GradientReduce::Contribution::isIdle))
      report.earlyStages.push_back(*reduce.stage);
  }
  std::ranges::sort(report.earlyStages);
}

/// Sets the receive window, its bytes and the makespans with it and with
/// smaller windows. If `given` is 0, chooses the window.
static void describeWindow(const Windows &windows, int32_t given,
                           Report &report) {
  bool widened = given == 0;
  int32_t window = widened ? windows.fastestWindow() : given;
  report.receiveWindow = window;
  report.receiveBytes = windows.bytes(window, widened);
  if (!widened && given < windows.minWindow())
    report.notes.push_back("a receive window of " + std::to_string(given) +
                           " is too small, because messages overtake each "
                           "other: at least " +
                           std::to_string(windows.minWindow()) + " is needed");
  if (widened && window > 1 && !report.problem.memoryCaps.empty())
    report.notes.push_back("the compiler uses a smaller receive window if "
                           "workers would exceed their caps");
  if (!report.problem.hasFlights())
    return;
  auto add = [&](int32_t size) {
    Timing timing = windows.simulate(size, widened);
    if (timing.complete)
      report.windowMakespans.emplace_back(size, timing.makespan);
  };
  // Try only powers of two, so that there are few simulations.
  for (int64_t size = 1; size < window; size *= 2)
    add(static_cast<int32_t>(size));
  add(window);
}

/// A note on better options of the scheme. Empty unless some options make a
/// step at least 0.1 % faster and no worker needs more memory than the present
/// maximum. Also empty for long orders, because the search would take too long.
static std::string betterOptions(const Report &report) {
  constexpr int64_t kMostActions = int64_t{1} << 16;
  const Problem &problem = report.problem;
  int64_t actions = int64_t{2} * problem.microBatches() *
                    static_cast<int64_t>(problem.stages.size());
  if (report.options.table().empty() || actions > kMostActions)
    return {};
  std::optional<Candidate> best =
      bestOf(*report.scheme, openRequest(*report.scheme, problem),
             [&](const Candidate &candidate) {
               const Timing &own = report.timing;
               return candidate.peakBytes <= std::ranges::max(own.peakBytes) &&
                      candidate.peakActivations <=
                          std::ranges::max(own.peakActivations);
             });
  if (!best || !best->fits || best->time.total >= 0.999 * report.step.total)
    return {};
  std::string text;
  const Options &options = best->plan.options;
  for (size_t i = 0; i < options.table().size(); ++i)
    if (options[i] != report.options[i])
      text += (text.empty() ? "" : " and ") +
              std::string(options.table()[i].name) + " = " + options.print(i);
  return "with " + text + " a step would take " +
         percent(best->time.total / report.step.total) +
         " of this time, and no worker would need more memory";
}

Report makeReport(std::string name, const Scheme *scheme,
                  const Options &options, const Problem &problem,
                  const Schedule &schedule, const TimeScale &scale,
                  int32_t receiveWindow) {
  Report report;
  report.name = std::move(name);
  report.schedule = scheme ? scheme->name : "";
  report.scheme = scheme;
  report.options = options;
  report.problem = problem;
  report.scale = scale;
  report.timing = simulate(problem, schedule);
  report.residentBytes = residentBytes(problem);
  if (auto excess = capExcess(problem, schedule))
    report.overCap = describe(*excess, problem, schedule);
  // An order that exceeds the memory caps may be faster than a bound that
  // assumes the caps. So no bound may use the caps.
  Problem bounded = problem;
  if (!report.overCap.empty())
    bounded.memoryCaps.clear();
  report.bounds = bounds(bounded);
  describeWindow(Windows(problem, schedule), receiveWindow, report);
  report.deviceOrderMakespan =
      simulate(problem, schedule, {.inDeviceOrder = true, .hasTotals = false})
          .makespan;
  report.step = stepTime(problem, schedule);
  addAllReduces(report, schedule);
  if (stepsOverlap(problem.updates))
    report.steady = steadyState(problem, schedule);
  if (!problem.recompute.empty()) {
    Problem keeping = problem;
    keeping.recompute.clear();
    Schedule withoutRecompute = removeRecompute(schedule);
    report.withoutRecompute = simulate(keeping, withoutRecompute);
    if (report.steady)
      report.steadyWithoutRecompute = steadyState(keeping, withoutRecompute);
  }

  if (!problem.memoryCaps.empty())
    report.notes.push_back("memory caps apply to the arena and the stashes of "
                           "a program, which may "
                           "need more than the peak bytes");
  if (!scheme) {
    report.notes.push_back(
        "no formula is compared, because the order is given");
    return report;
  }
  if (scheme->note)
    if (std::string note = scheme->note(problem); !note.empty())
      report.notes.push_back(std::move(note));
  if (std::string note = betterOptions(report); !note.empty())
    report.notes.push_back(std::move(note));
  if (std::optional<Sizes> sizes = sizesOf(problem, options)) {
    if ((report.bubbleFormula = findBubbleFormula(*scheme, *sizes)))
      report.bubbleValue = report.bubbleFormula->value(*sizes);
    if (report.bubbleFormula && sizes->recomputed)
      report.notes.push_back(
          "in the formula of the bubble, b is a recompute plus a backward");
    if ((report.peakFormula = findPeakFormula(*scheme, *sizes)))
      report.peakValue = report.peakFormula->value(*sizes);
  }
  return report;
}

} // namespace chimera::schedule
