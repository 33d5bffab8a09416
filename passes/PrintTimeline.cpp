//===- PrintTimeline.cpp - The schedule as text or picture ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SideBySide.h"
#include "compiler/schedule/timeline/SteadyStep.h"
#include "passes/Passes.h"
#include "passes/Times.h"
#include "passes/Title.h"
#include "runtime/program/Output.h"
#include "runtime/program/Printable.h"

#include "llvm/Support/MemoryBuffer.h"

#include <deque>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

namespace chimera {

static Help timelineFormatHelp() {
  return {helpOf("Form of the timeline", schedule::timelineFormats())};
}

#define GEN_PASS_DEF_PRINTTIMELINEPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kPass = "chimera-print-timeline";

/// The width of the terminal if `output` is one, else the default.
size_t defaultWidth(StringRef output) {
  winsize size = {};
  if (output == "-" && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    return size.ws_col;
  return schedule::kLineWidth;
}

/// A pipeline's timeline and the data that it refers to.
struct Shown {
  Shown(PipelineOp pipeline, const TimedSchedule &of, bool slots,
        size_t lineWidth)
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
    occupations = schedule::occupationsOf(of.problem, of.schedule, timing);
    timeline.occupations = &occupations;
    if (!schedule::hasTail(of.problem))
      return;
    timeline.step = schedule::stepTime(of.problem, of.schedule);
    tail = schedule::stepsOverlap(of.problem.updates)
               ? schedule::tailAmong(of.problem, of.schedule, timing)
               : schedule::tailOf(of.problem, of.schedule, timing);
    timeline.tail = &tail;
  }
  Shown(const Shown &) = delete;

  schedule::Timing timing;
  schedule::Tail tail;
  schedule::Occupations occupations;
  schedule::Timeline timeline;
};

struct PrintTimeline : WithTimes<impl::PrintTimelinePassBase<PrintTimeline>> {
  using WithTimes::WithTimes;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::TimelineFormat *chosen =
        choose(module, kPass, "format", schedule::timelineFormats(),
               StringRef(format));
    FailureOr<Times> times = Times::read(module, kPass, timeOptions());
    if (width < 0)
      emitError() << "expected width of at least 1, or 0 for the terminal's, "
                     "got "
                  << width.getValue();
    FailureOr<SmallVector<PipelineOp>> pipelines = pipelinesOf(module, kPass);
    if (!chosen || failed(times) || width < 0 || failed(pipelines) ||
        failed(checkMeasured(*pipelines)))
      return signalPassFailure();
    FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
        *pipelines, *times, [&](PipelineOp pipeline) -> auto & {
          return getChildAnalysis<ScheduleAnalysis>(pipeline);
        });
    if (failed(timed))
      return signalPassFailure();
    size_t lineWidth = width > 0 ? static_cast<size_t>(width)
                                 : defaultWidth(output.getValue());
    // A deque, because timelines refer to its elements.
    std::deque<Shown> shown;
    for (auto [pipeline, of] : llvm::zip_equal(*pipelines, *timed))
      shown.emplace_back(
          pipeline, of, times->areUnset() && of.schedule.hasSlots(), lineWidth);
    FailureOr<std::string> document = render(*chosen, *pipelines, shown);
    // Check memory caps last, so that the timeline also shows pipelines that
    // exceed them.
    if (failed(document) ||
        failed(writeDocument(module, kPass, output.getValue(), *document)) ||
        failed(checkCaps(*pipelines, *timed)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  InFlightDiagnostic emitError() {
    return getOperation().emitError() << kPass << ": ";
  }

  /// Checks the options `measured` and `copy`: they need a single pipeline, and
  /// the output must not overwrite the trace.
  LogicalResult checkMeasured(ArrayRef<PipelineOp> pipelines) {
    if (measured.empty() && copy.hasValue())
      return emitError() << "expected measured beside copy, got copy="
                         << copy.getValue() << " alone";
    if (measured.empty())
      return success();
    if (pipelines.size() > 1)
      return emitError()
             << "expected one chimera.pipeline beside measured, got "
             << pipelines.size();
    if (output != "-" && program::areSameFile(output, measured))
      return emitError() << output << ": expected another file than measured";
    return success();
  }

  FailureOr<std::string> render(const schedule::TimelineFormat &form,
                                ArrayRef<PipelineOp> pipelines,
                                const std::deque<Shown> &shown) {
    if (!measured.empty())
      return renderBeside(form, pipelines.front(), shown.front().timeline);
    std::vector<schedule::Timeline> timelines;
    timelines.reserve(shown.size());
    for (const Shown &one : shown)
      timelines.push_back(one.timeline);
    return form.render(timelines);
  }

  FailureOr<std::string> renderBeside(const schedule::TimelineFormat &form,
                                      PipelineOp pipeline,
                                      const schedule::Timeline &timeline) {
    if (!schedule::stepsOverlap(timeline.problem.updates))
      return renderBeside(form, pipeline, timeline, {});
    schedule::SteadyStep step =
        schedule::steadyStep(timeline.problem, timeline.schedule);
    return renderBeside(form, pipeline, schedule::timelineOf(timeline, step),
                        step.begins);
  }

  FailureOr<std::string> renderBeside(const schedule::TimelineFormat &form,
                                      PipelineOp pipeline,
                                      const schedule::Timeline &timeline,
                                      ArrayRef<int64_t> begins) {
    const schedule::TimeUnit &unit = *timeline.scale.unit;
    if (timeline.slots || !unit.isDuration)
      return pipeline.emitOpError()
             << "expected times that are durations beside measured, got unit "
             << (timeline.slots ? "slot" : unit.name)
             << ": give costs=stages for stages whose time_unit is a duration, "
                "as it is on a chimera.machine with a profile (chimera-run "
                "--profile) or a speed, or give forward and unit";
    std::optional<schedule::ClockedStep> clocked =
        schedule::clocked(timeline, begins);
    if (!clocked)
      return pipeline.emitOpError() << "expected a step of less than 100 days "
                                       "beside measured, got a longer one";
    struct stat status;
    if (stat(measured.c_str(), &status) == 0 &&
        (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
      return emitError() << measured
                         << ": expected a file or a pipe, got a device";
    auto file = llvm::MemoryBuffer::getFile(measured.getValue());
    if (!file)
      return emitError() << measured
                         << ": cannot read: " << file.getError().message();
    std::optional<int64_t> number;
    if (copy.hasValue())
      number = copy.getValue();
    auto read =
        schedule::readMeasured(std::string_view((*file)->getBuffer()),
                               timeline.problem, timeline.schedule, number);
    if (const auto *error = std::get_if<std::string>(&read))
      return emitError() << program::printable(measured + ": " + *error);
    auto &run = std::get<schedule::Measured>(read);
    if (!run.pipeline.empty() && run.pipeline != pipeline.getSymName())
      pipeline.emitWarning("expected the trace of @")
          << program::printable(std::string_view(pipeline.getSymName()))
          << ", got one of @" << program::printable(run.pipeline);
    return form.renderBeside(
        schedule::SideBySide(timeline, std::move(*clocked), std::move(run)));
  }
};

} // namespace
} // namespace chimera
