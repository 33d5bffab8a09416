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

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;

namespace chimera {

std::span<const TimeSource> timeSources() {
  using Scope = TimeSource::Scope;
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

using schedule::MessageTime;

static MessageTime &onTheWay(schedule::Link &link) { return link; }
static MessageTime &sending(schedule::Link &link) { return link.send; }
static MessageTime &receiving(schedule::Link &link) { return link.receive; }

std::span<const MessageOption> messageOptions() {
  static constexpr MessageOption all[] = {
      {"p2p", "Time of a message on its way to another worker", onTheWay,
       &MessageTime::alpha},
      {"p2p-per-mib", "Additional time of a message for each MiB", onTheWay,
       &MessageTime::beta},
      {"send", "Time for which sending a message occupies the worker", sending,
       &MessageTime::alpha},
      {"send-per-mib", "Additional time of sending for each MiB", sending,
       &MessageTime::beta},
      {"receive", "Time for which receiving a message occupies the worker",
       receiving, &MessageTime::alpha},
      {"receive-per-mib", "Additional time of receiving for each MiB",
       receiving, &MessageTime::beta},
  };
  return all;
}

/// The product, or INT64_MAX if it is too large. schedule::check refuses
/// problems with such times.
static int64_t multiply(int64_t time, int64_t factor) {
  int64_t product = 0;
  return llvm::MulOverflow(time, factor, product) ? INT64_MAX : product;
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
  const bool areOwn = source->scope == TimeSource::Scope::OwnCosts;
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
  Times result(*source, *unit);
  if (failed(result.setTicks(module, pass, options)))
    return failure();
  if (int64_t whole = result.wholeBackward();
      result.weightGradient > 0 && result.weightGradient >= whole)
    return refuse("weight-gradient below the whole backward, " +
                      schedule::decimalNumber(whole, result.perUnit),
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
    return multiply(time.digits, powerOfTen(places - time.places));
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
  perUnit = powerOfTen(places) / common;
  auto ticksOf = [&](const Decimal &time) { return digitsOf(time) / common; };
  forward = ticksOf(options.forward);
  backward = ticksOf(options.backward);
  weightGradient = ticksOf(options.weightGradient);
  update = ticksOf(options.update);
  for (const auto &[name, time] : options.messages)
    messages.emplace_back(
        &*llvm::find_if(messageOptions(),
                        [&, name = name](const MessageOption &option) {
                          return option.name == name;
                        }),
        ticksOf(time));
  return success();
}

int64_t Times::wholeBackward() const {
  return backward > 0 ? backward : multiply(2, forward);
}

int64_t Times::timeOfStage(const schedule::Problem &problem, int64_t time,
                           int64_t factor) const {
  int64_t ticks = multiply(time, factor);
  if (!arePerWorker())
    return ticks;
  // The division has no remainder, because `factor` is a multiple of `least` in
  // `refinement`.
  auto stages = static_cast<int64_t>(problem.stages.size());
  int64_t common = std::gcd<int64_t>(stages, problem.workers);
  return multiply(ticks / (stages / common), problem.workers / common);
}

int64_t Times::refinement(const schedule::Problem &problem) const {
  if (areOwn())
    return 1;
  auto stages = static_cast<int64_t>(problem.stages.size());
  const int64_t least =
      arePerWorker() ? stages / std::gcd<int64_t>(stages, problem.workers) : 1;
  if (perUnit == 1 && !arePerWorker())
    return 1;
  int64_t factor = 1;
  auto cutInto = [&](int64_t parts, int64_t time) {
    // Refine only by the largest power of two in `parts`, so that results
    // remain finite decimals. A third of a decimal may have infinitely many
    // digits.
    parts &= -parts;
    factor = std::max(
        factor, parts / std::gcd(parts, timeOfStage(problem, time, least)));
  };
  int64_t parts = schedule::maxParts(problem.pipelines);
  bool isSplit = problem.splits.any();
  bool halves = isSplit && weightGradient == 0;
  cutInto(halves ? 2 * parts : parts, wholeBackward());
  if (isSplit && weightGradient > 0)
    cutInto(parts, weightGradient);
  if (!problem.recompute.empty())
    cutInto(parts, forward);
  int64_t refined = 0;
  return llvm::MulOverflow(perUnit * least, factor, refined) ? least
                                                             : least * factor;
}

void Times::setStages(schedule::Problem &problem, int64_t factor) const {
  if (areOwn()) {
    for (schedule::StageCost &cost : problem.stages) {
      for (int64_t *time :
           {&cost.forward, &cost.backward, &cost.inputGradient,
            &cost.weightGradient, &cost.recompute, &cost.update})
        *time = multiply(*time, factor * perUnit);
      for (std::optional<int64_t> *time :
           {&cost.pairedForward, &cost.joinedWeightGradient})
        if (*time)
          *time = multiply(**time, factor * perUnit);
    }
    return;
  }
  if (areDefault()) {
    // Every action takes one unit. Each part of a backward also takes one unit.
    int64_t parts = schedule::maxParts(problem.pipelines);
    for (schedule::StageCost &cost : problem.stages)
      cost = {1, parts, parts, parts, parts, 0};
    return;
  }
  auto ofStage = [&](int64_t time) {
    return timeOfStage(problem, time, factor);
  };
  int64_t whole = ofStage(wholeBackward());
  int64_t second = weightGradient > 0 ? ofStage(weightGradient)
                                      : std::max<int64_t>(1, whole / 2);
  int64_t first = ofStage(forward);
  for (schedule::StageCost &cost : problem.stages)
    cost = {first,  whole, std::max<int64_t>(1, whole - second),
            second, first, ofStage(update)};
}

void Times::setLinks(schedule::LinkClass &links, int64_t factor,
                     int64_t ownTicks) const {
  schedule::Link &link = links.link;
  std::vector<MessageTime *> all = {&onTheWay(link), &sending(link),
                                    &receiving(link), &links.allReduceOverhead};
  if (links.allReduceMessage)
    all.push_back(&*links.allReduceMessage);
  for (MessageTime *message : all) {
    message->alpha = multiply(message->alpha, factor * perUnit);
    message->beta = multiply(message->beta, factor * perUnit);
  }
  for (auto [option, ticks] : messages) {
    MessageTime &message = option->message(link);
    message.*option->time = multiply(multiply(ticks, factor), ownTicks);
    message.betaBytes = schedule::kMebibyte;
  }
}

FailureOr<schedule::TimeScale> Times::apply(PipelineOp pipeline,
                                            schedule::Problem &problem) const {
  FailureOr<const schedule::TimeUnit *> shown = unit;
  if (areOwn())
    shown = timeUnitOf(pipeline);
  if (failed(shown))
    return failure();
  // If the stages have their own times, these are in ticks already. A unit has
  // several ticks if the pipeline states times with fractions.
  const int64_t ownTicks = areOwn() ? ticksPerUnit(pipeline) : 1;
  if (multiply(perUnit, ownTicks) == INT64_MAX)
    return pipeline.emitError("expected times of fewer digits after the point, "
                              "in the pipeline and in the options");
  const int64_t factor = refinement(problem);
  setStages(problem, factor);
  if (!areOwn())
    static_cast<schedule::LinkClass &>(problem) = {}, problem.node.reset();
  for (schedule::LinkClass *links : problem.classes())
    setLinks(*links, factor, ownTicks);
  return schedule::TimeScale{*shown, factor * perUnit * ownTicks};
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
