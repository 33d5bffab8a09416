//===- Reporting.cpp - What reports and timelines share -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Reporting.h"

#include "passes/Bridge.h"
#include "runtime/program/Output.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace chimera {

/// The backward that is given, twice the forward, or 1.
static int64_t wholeBackward(const TimeOptions &options) {
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
  const std::pair<StringRef, int64_t> stageTimes[] = {
      {"forward", options.forward},
      {"backward", options.backward},
      {"weight-gradient", options.weightGradient}};
  for (auto [name, time] : stageTimes) {
    if (time < 0)
      return refuse(name + " of at least 1, or 0 for a default", Twine(time));
    if (source->stages && time > 0)
      return refuse("no " + name + " beside costs=stages",
                    name + "=" + Twine(time));
    if (!source->stages && options.forward == 0 && time > 0)
      return refuse("forward beside " + name,
                    name + "=" + Twine(time) + " alone: give forward too");
  }
  Times times(options, *source, *unit);
  for (auto [name, time] : llvm::zip(linkOptionNames(), options.link)) {
    if (time.value_or(0) < 0)
      return refuse(name + " of at least 0", Twine(*time));
    if (times.areUnset() && time.value_or(0) > 0)
      return refuse("forward or costs=stages beside " + name,
                    name + "=" + Twine(*time) + " alone: give forward too");
  }
  if (times.areUnset() && unit != &schedule::timeUnits().front())
    return refuse("forward or costs=stages beside unit",
                  "unit=" + options.unit + " alone: give forward too");
  if (options.weightGradient > 0 &&
      options.weightGradient >= wholeBackward(options))
    return refuse("weight-gradient below the whole backward, " +
                      Twine(wholeBackward(options)),
                  Twine(options.weightGradient));
  return times;
}

void Times::apply(schedule::Problem &problem) const {
  if (!source->stages)
    problem.link = {};
  schedule::Link &link = problem.link;
  schedule::MessageTime *const messages[] = {&link, &link.send, &link.receive};
  for (size_t i = 0; i < options.link.size(); ++i)
    if (options.link[i]) {
      (i % 2 == 0 ? messages[i / 2]->alpha : messages[i / 2]->beta) =
          *options.link[i];
      messages[i / 2]->betaBytes = schedule::kMebibyte;
    }
  if (source->stages)
    return;
  if (areUnset()) {
    // Every action takes one unit, and so does each part of one.
    int64_t parts = 1;
    for (const schedule::Pipeline &pipeline : problem.pipelines)
      parts = std::max<int64_t>(parts, pipeline.backwardParts);
    for (schedule::StageCost &cost : problem.stages)
      cost = {1, parts, parts, parts, parts};
    return;
  }
  int64_t backward = wholeBackward(options);
  int64_t weightGradient = options.weightGradient > 0
                               ? options.weightGradient
                               : std::max<int64_t>(1, backward / 2);
  for (schedule::StageCost &cost : problem.stages)
    cost = {options.forward, backward,
            std::max<int64_t>(1, backward - weightGradient), weightGradient,
            options.forward};
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
  return of;
}

} // namespace chimera
