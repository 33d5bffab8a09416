//===- MakePlan.cpp - The plan of a scheme --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"

#include <algorithm>

namespace chimera::schedule {

/// Adds to `found` the settings that `scheme` accepts. Options before `index`
/// keep their values in `options`. Each open option from `index` on has each of
/// its values in turn.
static void addSettings(const Scheme &scheme, Request &request,
                        const Options &options, size_t index,
                        std::vector<Options> &found) {
  if (index == scheme.options.size()) {
    request.options = options;
    if (scheme.check(request).empty())
      found.push_back(options);
    return;
  }
  if (!options.isOpen(index))
    return addSettings(scheme, request, options, index + 1, found);
  const Option &option = scheme.options[index];
  bool isWord = !option.words.empty();
  auto end =
      isWord ? static_cast<int32_t>(option.words.size()) : request.workers + 1;
  for (int32_t value = isWord ? 0 : 1; value < end; ++value) {
    Options set = options;
    set.set(index, value);
    addSettings(scheme, request, set, index + 1, found);
  }
}

std::vector<Options> settingsOf(const Scheme &scheme, const Request &request) {
  std::vector<Options> found;
  Request each = request;
  addSettings(scheme, each, request.options, 0, found);
  return found;
}

/// Raises each cost to at least `parts` ticks, so that each part of a backward
/// takes some time.
static void raiseCosts(Workload &workload, int64_t parts) {
  for (StageCost &cost : workload.stages) {
    for (int64_t *time : {&cost.backward, &cost.inputGradient,
                          &cost.weightGradient, &cost.recompute})
      *time = std::max(*time, parts);
    if (cost.joinedWeightGradient)
      *cost.joinedWeightGradient = std::max(*cost.joinedWeightGradient, parts);
  }
}

static std::optional<Candidate> candidateOf(const Scheme &scheme,
                                            const Request &request) {
  PlanOrError made = makePlan(scheme, request);
  if (!made.plan)
    return std::nullopt;
  Workload workload = request;
  raiseCosts(workload, maxParts(made.plan->pipelines));
  Problem problem = problemOf(workload, *made.plan);
  if (!check(problem).empty())
    return std::nullopt;
  Schedule order = made.plan->order;
  if (!problem.recompute.empty())
    order = insertRecompute(problem, order);
  Timing timing = simulate(problem, order);
  return Candidate{std::move(*made.plan), stepTime(problem, order),
                   !capExcess(problem, order).has_value(),
                   std::ranges::max(timing.peakBytes),
                   std::ranges::max(timing.peakActivations)};
}

std::optional<Candidate>
bestOf(const Scheme &scheme, const Request &request,
       const std::function<bool(const Candidate &)> &allowed) {
  std::optional<Candidate> best;
  Request each = request;
  for (Options &options : settingsOf(scheme, request)) {
    each.options = std::move(options);
    std::optional<Candidate> candidate = candidateOf(scheme, each);
    if (!candidate || (allowed && !allowed(*candidate)))
      continue;
    if (!best || (candidate->fits && !best->fits) ||
        (candidate->fits == best->fits &&
         candidate->time.total < best->time.total))
      best = std::move(candidate);
  }
  return best;
}

Request openRequest(const Scheme &scheme, const Problem &problem) {
  Request request;
  static_cast<Workload &>(request) = problem;
  request.microBatches = problem.microBatches();
  request.splitBackward = problem.splits.any() && !problem.splits.anyWhole();
  request.options = Options(scheme.options);
  for (size_t i = 0; i < scheme.options.size(); ++i)
    request.options.set(i, kBest);
  return request;
}

std::string planError(const Scheme &scheme, const Request &request) {
  if (!request.options.anyOpen())
    return scheme.check(request);
  if (!settingsOf(scheme, request).empty())
    return {};
  // No setting of the open options has a plan. Report the error of the setting
  // in which each open option has its default value.
  Request any = request;
  for (size_t i = 0; i < scheme.options.size(); ++i)
    if (any.options.isOpen(i))
      any.options.set(i, scheme.options[i].defaultValue);
  return scheme.check(any);
}

Plan placePlan(const Scheme &scheme, const Request &request) {
  Plan plan = scheme.place(request);
  plan.options = request.options;
  if (request.splitBackward)
    plan.splits = true;
  return plan;
}

PlanOrError makePlan(const Scheme &scheme, const Request &request) {
  if (std::string reason = planError(scheme, request); !reason.empty())
    return reason;
  if (request.options.anyOpen()) {
    if (std::optional<Candidate> best = bestOf(scheme, request))
      return std::move(best->plan);
    return std::string("no values of its options give a plan");
  }
  PlanOrError made = scheme.make(request);
  if (made.plan)
    made.plan->options = request.options;
  if (made.plan && request.splitBackward && made.plan->splits.anyWhole()) {
    made.plan->order = splitBackwards(made.plan->order);
    made.plan->splits = true;
  }
  return made;
}

} // namespace chimera::schedule
