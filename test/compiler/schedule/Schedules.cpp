//===- Schedules.cpp - Problems and schedules to test with ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/timeline/Grid.h"
#include "compiler/schedule/timeline/Timeline.h"

#include <stdexcept>

namespace chimera::schedule {

Request requestFor(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice, StageCost cost, bool splitBackward) {
  Request request;
  request.workers = workers;
  request.stages.assign(static_cast<size_t>(workers) * choice.chunks, cost);
  request.microBatches = microBatches;
  request.splitBackward = splitBackward;
  request.options =
      choice.options.table().empty() ? Options(scheme.options) : choice.options;
  return request;
}

std::string planError(const Scheme &scheme, int32_t workers,
                      int32_t microBatches, const Choice &choice) {
  return scheme.check(requestFor(scheme, workers, microBatches, choice));
}

static Plan planFor(const Scheme &scheme, const Request &request) {
  PlanOrError made = makePlan(scheme, request);
  if (!made.plan)
    throw std::invalid_argument(made.reason);
  return *made.plan;
}

Case makeCase(const std::string &name, int32_t workers, int32_t microBatches,
              StageCost cost, bool splitBackward, const Choice &choice) {
  const Scheme *scheme = findScheme(name);
  if (!scheme)
    throw std::invalid_argument("no scheme " + name);
  Request request =
      requestFor(*scheme, workers, microBatches, choice, cost, splitBackward);
  Plan plan = planFor(*scheme, request);
  return {scheme,
          {request.options, choice.chunks},
          problemOf(request, plan),
          plan.order};
}

Request requestOf(const Case &c) {
  Request request;
  static_cast<Workload &>(request) = c.problem;
  request.microBatches = c.problem.microBatches();
  request.splitBackward = !c.problem.splits.anyWhole();
  request.options = c.choice.options;
  return request;
}

std::string noteOf(const Case &c) {
  return c.scheme->note ? c.scheme->note(c.problem) : "";
}

void scheduleAgain(Case &c, bool splitBackward) {
  Request request = requestOf(c);
  request.splitBackward = splitBackward;
  Plan plan = planFor(*c.scheme, request);
  c.problem = problemOf(request, plan);
  c.schedule = plan.order;
}

std::vector<Choice> choices(const Scheme &scheme, int32_t workers) {
  std::vector<Choice> all, result;
  if (std::string_view(scheme.name) == "chimera")
    for (int32_t pipelines = 2; pipelines <= workers; ++pipelines)
      for (Concatenation concatenation : kConcatenations)
        all.push_back(chimeraWith(pipelines, concatenation));
  else
    for (int32_t chunks = 1; chunks <= 3; ++chunks)
      all.push_back({{}, chunks});
  for (const Choice &choice : all)
    if (canPlan(scheme, workers, workers, choice))
      result.push_back(choice);
  return result;
}

Concatenation concatenationOf(const Choice &choice) {
  return choice.options.table().empty() ? Concatenation::Direct
                                        : concatenationOf(choice.options);
}

std::string nameOf(const Scheme &scheme, int32_t workers, int32_t microBatches,
                   const Choice &choice) {
  std::string name = std::string(scheme.name) +
                     " D=" + std::to_string(workers) +
                     " N=" + std::to_string(microBatches);
  for (size_t i = 0; i < choice.options.table().size(); ++i)
    name += " " + choice.options.print(i);
  if (choice.chunks > 1)
    name += " " + std::to_string(choice.chunks) + " chunks";
  return name;
}

std::string gridOf(const Case &c, const Timing &timing, bool slots,
                   size_t lineWidth) {
  Timeline timeline{"p", "title", c.problem, c.schedule, timing, slots};
  timeline.lineWidth = lineWidth;
  return renderGrid(timeline);
}

std::string violationText(const std::vector<Violation> &violations) {
  std::string text;
  for (const Violation &violation : violations)
    text += violation.message + "\n";
  return text;
}

} // namespace chimera::schedule
