//===- ShownSchedule.cpp - A pipeline's timeline and report ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/report/ShownSchedule.h"

#include "compiler/schedule/timeline/SideBySide.h"
#include "compiler/schedule/timeline/SteadyStep.h"
#include "compiler/schedule/timeline/TimelineFormats.h"
#include "passes/Workers.h"
#include "passes/describe/CostInputs.h"
#include "passes/describe/DescriptionReader.h"
#include "passes/report/Title.h"
#include "runtime/program/Printable.h"

#include "llvm/Support/MemoryBuffer.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

namespace chimera {

/// True if the pipeline has stages, and a description or a model states their
/// costs and sizes. False if the costs and sizes are assumed.
static bool hasStatedStages(PipelineOp pipeline) {
  return !pipeline.getBody().empty() &&
         !pipeline.getBody().front().getOps<StageOp>().empty() &&
         !hasAssumedStages(pipeline);
}

StatedCosts::StatedCosts(PipelineOp pipeline)
    : hasTimes(machineOf(pipeline) ||
               (hasStatedStages(pipeline) && pipeline.getTimeUnit() != "flop")),
      hasSizes(pipeline.getModel() || hasStatedStages(pipeline)) {}

/// Adds the times of the pipeline's link to `options`. These times are in the
/// same unit as the other times of `options`.
static void addLink(LinkAttr attribute, TimeOptions &options) {
  schedule::Link link = linkOf(attribute, powerOfTen(attribute.getPlaces()));
  for (const schedule::MessageOption &option : schedule::messageOptions())
    if (int64_t time = option.message(link).*option.time; time > 0)
      options.messages.emplace_back(option.name,
                                    Decimal(time, attribute.getPlaces()));
}

TimeOptions completeTimes(PipelineOp pipeline, const StatedCosts &stated,
                          TimeOptions given) {
  if (given.areEmpty() && stated.hasTimes)
    given.costs = "stages";
  else if (given.costs.empty())
    given.costs = "worker";
  if (given.unit.empty())
    given.unit = "none";
  if (given.costs == "stages")
    return given;
  if (given.forward.digits == 0)
    given.forward = 1;
  if (LinkAttr link = pipeline.getLinkAttr(); link && given.messages.empty())
    addLink(link, given);
  return given;
}

FailureOr<TimedSchedule> scheduleToShow(PipelineOp pipeline,
                                        const StatedCosts &stated,
                                        const TimeOptions &options,
                                        ScheduleAnalysis &analysis,
                                        StringRef tool) {
  FailureOr<Times> times =
      Times::read(pipeline->getParentOfType<ModuleOp>(), tool, options);
  if (failed(times))
    return failure();
  FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
      pipeline, *times, [&](PipelineOp) -> auto & { return analysis; });
  if (failed(timed))
    return failure();
  if (!stated.hasSizes && !pipeline.getMemoryCap())
    timed->front().problem.bytes.clear();
  return std::move(timed->front());
}

ShownTimeline::ShownTimeline(PipelineOp pipeline, const TimedSchedule &of,
                             bool slots, size_t lineWidth)
    : timing(slots ? schedule::slotTiming(of.problem, of.schedule)
                   : schedule::simulate(of.problem, of.schedule)),
      timeline{program::printable(std::string_view(pipeline.getSymName())),
               titleOf(pipeline),
               of.problem,
               of.schedule,
               timing,
               slots,
               of.scale,
               lineWidth} {
  if (slots)
    return;
  occupations = schedule::messageOccupationsOf(of.problem, of.schedule, timing);
  timeline.occupations = &occupations;
  if (!schedule::hasSyncAndUpdate(of.problem))
    return;
  timeline.step = schedule::stepTime(of.problem, of.schedule);
  syncAndUpdate = schedule::syncAndUpdateOf(of.problem, of.schedule, timing);
  timeline.syncAndUpdate = &syncAndUpdate;
}

size_t outputWidth() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return schedule::kLineWidth;
}

/// The error message if the times of the schedule that is compared with a run
/// are in `unit`, which is no duration. `run` says how to spell the names of
/// options.
static std::string unitError(StringRef unit, const TraceToShow &run) {
  const std::string dashes = run.isOfTool ? "--" : "";
  // chimera-show takes the times of a machine without an option.
  const char *costs = run.isOfTool ? "" : " and give costs=stages";
  return "expected a prediction in seconds for " + dashes +
         "measured, got unit " + unit.str() +
         ": name a machine in the pipeline (on @here)" + costs + ", or give " +
         dashes +
         "costs=stages if the pipeline has stages with a duration as "
         "time_unit, or " +
         dashes + "forward and " + dashes + "unit";
}

/// Renders one step and the measured run side by side. If steps overlap,
/// `begins` has the start of the step on each worker.
static FailureOr<std::string>
renderStepSideBySide(const schedule::TimelineFormat &form, PipelineOp pipeline,
                     const schedule::Timeline &timeline,
                     ArrayRef<int64_t> begins, const TraceToShow &run,
                     StringRef tool) {
  auto emitError = [&] {
    return pipeline->getParentOfType<ModuleOp>().emitError() << tool << ": ";
  };
  const schedule::TimeUnit &unit = *timeline.scale.unit;
  if (timeline.slots || !unit.isDuration)
    return pipeline.emitOpError(
        unitError(timeline.slots ? "slot" : unit.name, run));
  std::optional<schedule::NanosecondStep> prediction =
      schedule::nanosecondStepOf(timeline, begins);
  if (!prediction)
    return pipeline.emitOpError() << "expected a step of less than 100 days to "
                                     "compare with measured, got a longer one";
  std::string path = run.path.str();
  struct stat status;
  if (stat(path.c_str(), &status) == 0 &&
      (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
    return emitError() << path << ": expected a file or a pipe, got a device";
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return emitError() << path
                       << ": cannot read: " << file.getError().message();
  auto read =
      schedule::readMeasured(std::string_view((*file)->getBuffer()),
                             timeline.problem, timeline.schedule, run.copy);
  if (const auto *error = std::get_if<std::string>(&read))
    return emitError() << program::printable(path + ": " + *error);
  auto &measured = std::get<schedule::MeasuredStep>(read);
  if (!measured.pipeline.empty() && measured.pipeline != pipeline.getSymName())
    pipeline.emitWarning("expected the trace of @")
        << program::printable(std::string_view(pipeline.getSymName()))
        << ", got one of @" << program::printable(measured.pipeline);
  schedule::SideBySide both(timeline, std::move(*prediction),
                            std::move(measured));
  if (std::string fault = schedule::pictureError(both); !fault.empty())
    return emitError() << fault;
  return form.renderSideBySide(both);
}

FailureOr<std::string> renderSideBySide(const schedule::TimelineFormat &form,
                                        PipelineOp pipeline,
                                        const schedule::Timeline &timeline,
                                        const TraceToShow &run,
                                        StringRef tool) {
  if (!schedule::stepsOverlap(timeline.problem.updates))
    return renderStepSideBySide(form, pipeline, timeline, {}, run, tool);
  schedule::SteadyStep step =
      schedule::steadyStep(timeline.problem, timeline.schedule);
  return renderStepSideBySide(form, pipeline,
                              schedule::timelineOf(timeline, step), step.begins,
                              run, tool);
}

FailureOr<schedule::Report> reportOf(PipelineOp pipeline,
                                     const TimedSchedule &timed) {
  std::string_view name(scheduleNameOf(pipeline));
  // If the description gives the order, there is no scheme and so no formula.
  SchemeChoice choice = {};
  if (schedule::findScheme(name)) {
    FailureOr<SchemeChoice> found = schemeOf(pipeline);
    if (failed(found))
      return failure();
    choice = std::move(*found);
  }
  schedule::Report report = schedule::makeReport(
      program::printable(std::string_view(pipeline.getSymName())),
      choice.scheme, choice.options, timed.problem, timed.schedule, timed.scale,
      static_cast<int32_t>(pipeline.getReceiveWindow().value_or(0)));
  report.schedule = program::printable(name);
  report.microBatchSize = static_cast<int64_t>(pipeline.getMicroBatchSize());
  report.title = titleOf(pipeline);
  for (WorkerOp worker : workersOf(pipeline))
    if (std::optional<uint64_t> bytes = worker.allocatedBytes())
      report.allocatedBytes.push_back(static_cast<int64_t>(*bytes));
  if (!recomputeOf(pipeline).empty() && timed.problem.recompute.empty())
    report.notes.push_back(
        "nothing is recomputed: each forward is directly before its "
        "backward, or the order has no recomputes yet");
  return report;
}

} // namespace chimera
