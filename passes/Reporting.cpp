//===- Reporting.cpp - What reports and timelines share -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Reporting.h"

#include "passes/Bridge.h"
#include "runtime/program/Output.h"
#include "runtime/program/Program.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;

namespace chimera {

/// The backward that is given, twice the forward, or 1.
static int64_t wholeBackward(const TimesOf<int64_t> &options) {
  if (options.backward > 0)
    return options.backward;
  if (options.forward > 0)
    return options.forward > INT64_MAX / 2 ? INT64_MAX : 2 * options.forward;
  return 1;
}

std::span<const TimeSource> timeSources() {
  static constexpr std::array<TimeSource, 2> all = {{
      {"uniform",
       "every stage as the options forward, backward and "
       "weight-gradient say",
       false},
      {"stages", "each stage its own costs", true},
  }};
  return all;
}

std::span<const StringRef> linkOptionNames() {
  static constexpr StringRef all[] = {"p2p",     "p2p-per-mib",
                                      "send",    "send-per-mib",
                                      "receive", "receive-per-mib"};
  return all;
}

static std::string textOf(const Decimal &time) {
  std::string text;
  llvm::raw_string_ostream(text) << time;
  return text;
}

FailureOr<Times> Times::read(ModuleOp module, StringRef pass,
                             const TimeOptions &options) {
  const TimeSource *source =
      choose(module, pass, "costs", timeSources(), options.costs);
  const schedule::TimeUnit *unit =
      choose(module, pass, "unit", schedule::timeUnits(), options.unit);
  if (!source || !unit)
    return failure();
  auto refuse = [&](const Twine &expected, const Twine &got) {
    return module.emitError()
           << pass << ": expected " << expected << ", got " << got;
  };
  const TimesOf<Decimal> &given = options.times;
  const std::pair<StringRef, Decimal> stageTimes[] = {
      {"forward", given.forward},
      {"backward", given.backward},
      {"weight-gradient", given.weightGradient}};
  for (auto [name, time] : stageTimes) {
    std::string text = textOf(time);
    if (time.digits < 0)
      return refuse(name + " above 0, or 0 for a default", text);
    if (source->stages && time.digits > 0)
      return refuse("no " + name + " beside costs=stages", name + "=" + text);
    if (!source->stages && given.forward.digits == 0 && time.digits > 0)
      return refuse("forward beside " + name,
                    name + "=" + text + " alone: give forward too");
  }
  bool unset = !source->stages && given.forward.digits == 0;
  for (auto [name, time] : llvm::zip(linkOptionNames(), given.link)) {
    if (!time)
      continue;
    std::string text = textOf(*time);
    if (time->digits < 0)
      return refuse(name + " of at least 0", text);
    if (unset && time->digits > 0)
      return refuse("forward or costs=stages beside " + name,
                    name + "=" + text + " alone: give forward too");
  }
  if (source->stages && unit != &schedule::timeUnits().front())
    return refuse("no unit beside costs=stages, whose unit is the pipeline's "
                  "time_unit",
                  "unit=" + options.unit);
  if (unset && unit != &schedule::timeUnits().front())
    return refuse("forward beside unit",
                  "unit=" + options.unit + " alone: give forward too");
  Times result(*source, *unit);
  if (failed(result.scale(module, pass, given)))
    return failure();
  const TimesOf<int64_t> &times = result.times;
  if (times.weightGradient > 0 && times.weightGradient >= wholeBackward(times))
    return refuse("weight-gradient below the whole backward, " +
                      Twine(wholeBackward(times)),
                  Twine(times.weightGradient));
  return result;
}

/// Saturating, as the sum of all times is checked.
static int64_t multiply(int64_t time, int64_t factor) {
  int64_t product = 0;
  return llvm::MulOverflow(time, factor, product) ? INT64_MAX : product;
}

LogicalResult Times::scale(ModuleOp module, StringRef pass,
                           const TimesOf<Decimal> &given) {
  // The digits of all times in units of 10^-places.
  SmallVector<const Decimal *> all = {&given.forward, &given.backward,
                                      &given.weightGradient};
  for (const std::optional<Decimal> &time : given.link)
    if (time)
      all.push_back(&*time);
  auto powerOfTen = [](uint32_t exponent) {
    int64_t power = 1;
    while (exponent-- > 0)
      power *= 10;
    return power;
  };
  uint32_t places = 0;
  for (const Decimal *time : all)
    places = std::max(places, time->places);
  int64_t common = powerOfTen(places);
  auto digitsOf = [&](const Decimal &time) {
    return multiply(time.digits, powerOfTen(places - time.places));
  };
  perUnit = common;
  for (const Decimal *time : all)
    common = std::gcd(common, digitsOf(*time));
  perUnit /= common;
  auto scaled = [&](const Decimal &time) { return digitsOf(time) / common; };
  times.forward = scaled(given.forward);
  times.backward = scaled(given.backward);
  times.weightGradient = scaled(given.weightGradient);
  for (auto [to, from] : llvm::zip(times.link, given.link))
    if (from)
      to = scaled(*from);
  if (perUnit == 1)
    return success();
  for (const Decimal *time : all)
    if (digitsOf(*time) == INT64_MAX)
      return module.emitError()
             << pass << ": expected times of fewer digits, got "
             << textOf(*time) << " beside one of " << places
             << " digits behind the point";
  // perUnit divides a power of ten, so the part has as many places at most.
  std::string part =
      textOf(*decimalOf((Twine(common) + "e-" + Twine(places)).str()));
  auto named = std::make_shared<std::vector<PartOfUnit>>();
  for (const schedule::TimeUnit &unit : schedule::timeUnits()) {
    bool isBare = &unit == &schedule::timeUnits().front();
    named->push_back({isBare ? part : part + " " + unit.name, unit});
  }
  for (PartOfUnit &each : *named) {
    each.unit.name = each.name.c_str();
    each.unit.microseconds /= static_cast<double>(perUnit);
  }
  module.emitRemark() << pass << ": times are shown in units of "
                      << (*named)[timeUnit - schedule::timeUnits().data()].name
                      << ", in which all are whole";
  parts = std::move(named);
  return success();
}

FailureOr<const schedule::TimeUnit *> Times::unitOf(PipelineOp pipeline) const {
  FailureOr<const schedule::TimeUnit *> unit = timeUnit;
  if (source->stages)
    unit = timeUnitOf(pipeline);
  if (failed(unit) || !parts)
    return unit;
  return &(*parts)[*unit - schedule::timeUnits().data()].unit;
}

void Times::apply(schedule::Problem &problem) const {
  if (!source->stages)
    problem.link = {};
  schedule::Link &link = problem.link;
  schedule::MessageTime *const messages[] = {&link, &link.send, &link.receive};
  for (schedule::MessageTime *message : messages) {
    message->alpha = multiply(message->alpha, perUnit);
    message->beta = multiply(message->beta, perUnit);
  }
  for (size_t i = 0; i < times.link.size(); ++i)
    if (times.link[i]) {
      (i % 2 == 0 ? messages[i / 2]->alpha : messages[i / 2]->beta) =
          *times.link[i];
      messages[i / 2]->betaBytes = schedule::kMebibyte;
    }
  if (source->stages) {
    for (schedule::StageCost &cost : problem.stages)
      for (int64_t *time : {&cost.forward, &cost.backward, &cost.inputGradient,
                            &cost.weightGradient, &cost.recompute})
        *time = multiply(*time, perUnit);
    return;
  }
  if (areUnset()) {
    // Every action takes one unit, and so does each part of one.
    int64_t parts = 1;
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      parts = std::max<int64_t>(parts, pipeline.backwardParts);
    for (schedule::StageCost &cost : problem.stages)
      cost = {1, parts, parts, parts, parts};
    return;
  }
  int64_t backward = wholeBackward(times);
  int64_t weightGradient = times.weightGradient > 0
                               ? times.weightGradient
                               : std::max<int64_t>(1, backward / 2);
  for (schedule::StageCost &cost : problem.stages)
    cost = {times.forward, backward,
            std::max<int64_t>(1, backward - weightGradient), weightGradient,
            times.forward};
}

FailureOr<SmallVector<PipelineOp>> pipelinesOf(ModuleOp module,
                                               StringRef pass) {
  SmallVector<PipelineOp> pipelines(module.getOps<PipelineOp>());
  if (pipelines.empty())
    return module.emitError() << pass
                              << ": expected a chimera.pipeline, got "
                                 "none";
  return pipelines;
}

LogicalResult writeDocument(ModuleOp module, StringRef pass, StringRef path,
                            const std::string &text) {
  std::string error;
  if (path != "-") {
    if (program::writeWhole(path.str(), {std::as_bytes(std::span(text))},
                            error))
      return success();
    return module.emitError() << pass << ": " << error;
  }
  llvm::outs() << text;
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return success();
  std::error_code code = llvm::outs().error();
  // Else the stream would end the process.
  llvm::outs().clear_error();
  return module.emitError()
         << pass << ": cannot write to standard output: " << code.message();
}

FailureOr<ScheduledProblem> timedSchedule(PipelineOp pipeline,
                                          const Times &times) {
  FailureOr<ScheduledProblem> of = scheduledProblemOf(pipeline);
  if (failed(of))
    return failure();
  times.apply(of->problem);
  if (failed(verifySchedule(pipeline, *of)))
    return failure();
  of->problem.memoryCaps = capsOf(pipeline);
  return of;
}

/// The clause `recompute` of a description.
static std::string recomputeClause(PipelineOp pipeline) {
  ArrayRef<int32_t> stages = *pipeline.getRecompute();
  std::string text = "all";
  if (stages.size() < pipeline.getStages()) {
    text = "[";
    for (int32_t stage : stages)
      text += (text == "[" ? "" : ", ") + std::to_string(stage);
    text += "]";
  }
  return "recompute(" + text + (pipeline.getRecomputeFused() ? " fused)" : ")");
}

/// The options of the schedule, but for those that say what is so by default.
static std::string optionsClause(PipelineOp pipeline) {
  std::string text;
  if (DictionaryAttr options = pipeline.getScheduleOptionsAttr())
    for (NamedAttribute option : options) {
      std::string_view name(option.getName().strref());
      std::string value = optionText(option.getValue()).value_or("?");
      const schedule::SchemeOption *known = schedule::findSchemeOption(name);
      if (!known || value != known->print(schedule::SchemeOptions()))
        text += (text.empty() ? "" : ", ") + std::string(name) + " = " + value;
    }
  return text.empty() ? text : " {" + text + "}";
}

std::string titleOf(PipelineOp pipeline) {
  std::string title = pipeline.getSymName().str() + ": " +
                      pipeline.getSchedule().str() + optionsClause(pipeline);
  title += ", " + program::counted(pipeline.getStages(), "stage") + ", " +
           program::counted(pipeline.getMicroBatches(), "micro-batch");
  auto add = [&](const Twine &clause) { title += (", " + clause).str(); };
  if (pipeline.getDataParallel() > 1)
    add("data_parallel(" + Twine(pipeline.getDataParallel()) + ")");
  if (pipeline.getSplitBackward())
    add("split_backward");
  if (pipeline.getRecompute())
    add(recomputeClause(pipeline));
  if (pipeline.getAllReduce() != AllReducePolicy::Lazy)
    add("all_reduce(" + stringifyAllReducePolicy(pipeline.getAllReduce()) +
        ")");
  if (pipeline.getBucketBytes())
    add("bucket_bytes(" + Twine(*pipeline.getBucketBytes()) + ")");
  if (pipeline.getReceiveWindow())
    add("receive_window(" + Twine(*pipeline.getReceiveWindow()) + ")");
  return title;
}

} // namespace chimera
