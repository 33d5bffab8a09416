//===- Times.cpp - Times to show schedules with ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/report/Times.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/text/Magnitude.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/describe/Orders.h"
#include "runtime/program/Saturated.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;

namespace chimera {

std::span<const TimeSource> timeSources() {
  using Scope = schedule::StatedTimes::Scope;
  static constexpr std::array<TimeSource, 3> all = {{
      {"uniform",
       "each stage takes the times of forward, backward and "
       "weight-gradient",
       Scope::Stage},
      {"worker",
       "all stages of a worker in one pipeline together take these times: "
       "with two stages a worker, each takes half",
       Scope::Worker},
      {"stages", "each stage takes its own costs", Scope::OwnCosts},
  }};
  return all;
}

FailureOr<Times> Times::read(ModuleOp module, StringRef pass,
                             const TimeOptions &options) {
  const TimeSource *source =
      findEntry(module, pass, "costs", timeSources(), options.costs);
  const schedule::TimeUnit *unit =
      findEntry(module, pass, "unit", schedule::timeUnits(), options.unit);
  if (!source || !unit)
    return failure();
  auto refuse = [&](const Twine &expected, const Twine &got) {
    return module.emitError()
           << pass << ": expected " << expected << ", got " << got;
  };
  const bool areOwn = source->scope == schedule::StatedTimes::Scope::OwnCosts;
  bool unset = !areOwn && options.forward.digits == 0;
  const std::pair<StringRef, Decimal> stageTimes[] = {
      {"forward", options.forward},
      {"backward", options.backward},
      {"weight-gradient", options.weightGradient},
      {"update", options.update}};
  for (auto [name, time] : stageTimes) {
    std::string text = textOf(time);
    if (time.digits < 0)
      return refuse(name + " above 0, or 0 for a default", text);
    if (areOwn && time.digits > 0)
      return refuse("no " + name + " with costs=stages", name + "=" + text);
    if (unset && time.digits > 0)
      return refuse("forward with " + name, "only " + name + "=" + text);
  }
  for (auto [name, time] : options.messages) {
    std::string text = textOf(time);
    if (time.digits < 0)
      return refuse(name + " of at least 0", text);
    if (unset && time.digits > 0)
      return refuse("forward or costs=stages with " + name,
                    "only " + name + "=" + text);
  }
  if (areOwn && unit != &schedule::timeUnits().front())
    return refuse("no unit with costs=stages, whose unit is the pipeline's "
                  "time_unit",
                  "unit=" + options.unit);
  if (unset && unit != &schedule::timeUnits().front())
    return refuse("forward with unit", "only unit=" + options.unit);
  Times result(*unit);
  schedule::StatedTimes &stated = result.stated;
  stated.scope = source->scope;
  if (failed(result.setTicks(module, pass, options)))
    return failure();
  if (int64_t whole = stated.wholeBackward();
      stated.weightGradient > 0 && stated.weightGradient >= whole)
    return refuse("weight-gradient below the whole backward, " +
                      schedule::decimalNumber(whole, stated.perUnit),
                  textOf(options.weightGradient));
  return result;
}

LogicalResult Times::setTicks(ModuleOp module, StringRef pass,
                              const TimeOptions &options) {
  SmallVector<const Decimal *> all = {&options.forward, &options.backward,
                                      &options.weightGradient, &options.update};
  for (const auto &[name, time] : options.messages)
    all.push_back(&time);
  uint32_t places = 0;
  for (const Decimal *time : all)
    places = std::max(places, time->places);
  // All times are whole multiples of 10^-places units. A tick is the longest
  // time of which one unit and all times are whole multiples.
  auto digitsOf = [&](const Decimal &time) {
    return program::saturatedProduct(
        {time.digits, powerOfTen(places - time.places)});
  };
  int64_t common = powerOfTen(places);
  for (const Decimal *time : all) {
    if (places > 0 && digitsOf(*time) == INT64_MAX)
      return module.emitError()
             << pass << ": expected times of fewer digits, got "
             << textOf(*time) << " and one with " << places
             << " digits after the point";
    common = std::gcd(common, digitsOf(*time));
  }
  auto ticksOf = [&](const Decimal &time) { return digitsOf(time) / common; };
  stated.perUnit = powerOfTen(places) / common;
  stated.forward = ticksOf(options.forward);
  stated.backward = ticksOf(options.backward);
  stated.weightGradient = ticksOf(options.weightGradient);
  stated.update = ticksOf(options.update);
  for (const auto &[name, time] : options.messages)
    stated.messages.emplace_back(
        schedule::findMessageOption(std::string_view(name)), ticksOf(time));
  return success();
}

FailureOr<schedule::TimeScale> Times::apply(PipelineOp pipeline,
                                            schedule::Problem &problem) const {
  FailureOr<const schedule::TimeUnit *> shown = unit;
  if (stated.areOwn())
    shown = timeUnitOf(pipeline);
  if (failed(shown))
    return failure();
  // If the stages have their own times, these are in ticks already. A unit has
  // several ticks if the pipeline states times with fractions.
  const int64_t ownTicks = stated.areOwn() ? ticksPerUnit(pipeline) : 1;
  if (program::saturatedProduct({stated.perUnit, ownTicks}) == INT64_MAX)
    return pipeline.emitError("expected times of fewer digits after the point, "
                              "in the pipeline and in the options");
  return schedule::TimeScale{*shown, stated.apply(problem, ownTicks)};
}

/// If the pipeline has a valid order as text but no action ops, adds the
/// recomputes that chimera-recompute would add.
static void addRecomputes(PipelineOp pipeline, ScheduledProblem &of) {
  std::vector<schedule::Recompute> stages = recomputeOf(pipeline);
  if (stages.empty() || !of.problem.recompute.empty() || !hasOrders(pipeline))
    return;
  schedule::Problem problem = of.problem;
  problem.recompute = std::move(stages);
  schedule::Schedule added = schedule::insertRecompute(problem, of.schedule);
  // If every backward directly follows its forward, no recompute was added.
  // Then keep the problem without recomputation.
  if (added.workers != of.schedule.workers)
    of = {std::move(problem), std::move(added)};
}

static FailureOr<TimedSchedule> timedSchedule(PipelineOp pipeline,
                                              const Times &times,
                                              ScheduleAnalysis &analysis) {
  const ScheduledProblem *of = analysis.get();
  if (!of)
    return failure();
  // If the description gives the order, report its errors at the words of the
  // order.
  if (hasOrders(pipeline) && !analysis.violations().empty())
    return report(*readOrders(pipeline, of->problem), analysis.violations());
  TimedSchedule timed{*of, {}};
  addRecomputes(pipeline, timed);
  FailureOr<schedule::TimeScale> scale = times.apply(pipeline, timed.problem);
  if (failed(scale) || failed(verifySchedule(pipeline, timed)))
    return failure();
  timed.problem.memoryCaps = capsOf(pipeline);
  timed.scale = *scale;
  return timed;
}

FailureOr<std::vector<TimedSchedule>>
timedSchedules(ArrayRef<PipelineOp> pipelines, const Times &times,
               function_ref<ScheduleAnalysis &(PipelineOp)> analysisOf) {
  std::vector<TimedSchedule> all;
  for (PipelineOp pipeline : pipelines) {
    FailureOr<TimedSchedule> timed =
        timedSchedule(pipeline, times, analysisOf(pipeline));
    if (failed(timed))
      return failure();
    all.push_back(std::move(*timed));
  }
  return all;
}

LogicalResult checkCaps(ArrayRef<PipelineOp> pipelines,
                        ArrayRef<TimedSchedule> timed) {
  bool hold = true;
  for (auto [pipeline, of] : llvm::zip_equal(pipelines, timed))
    hold &= succeeded(checkCaps(pipeline, of));
  return success(hold);
}

} // namespace chimera
