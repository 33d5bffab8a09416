//===- PrintTimeline.cpp - The schedule as text or picture ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timeline.h"
#include "passes/Passes.h"
#include "passes/Times.h"
#include "passes/Title.h"
#include "runtime/program/Printable.h"

#include <deque>
#include <sys/ioctl.h>
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

/// The width of the terminal that `output` is, or of a line that is printed
/// elsewhere.
size_t defaultWidth(StringRef output) {
  winsize size = {};
  if (output == "-" && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    return size.ws_col;
  return schedule::kLineWidth;
}

struct PrintTimeline : WithTimes<impl::PrintTimelinePassBase<PrintTimeline>> {
  using WithTimes::WithTimes;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::TimelineFormat *chosen =
        choose(module, kPass, "format", schedule::timelineFormats(),
               StringRef(format));
    FailureOr<Times> times = Times::read(module, kPass, timeOptions());
    if (width < 0)
      module.emitError() << kPass
                         << ": expected width of at least 1, or 0 for "
                            "the terminal's, got "
                         << width.getValue();
    FailureOr<SmallVector<PipelineOp>> pipelines = pipelinesOf(module, kPass);
    if (!chosen || failed(times) || width < 0 || failed(pipelines))
      return signalPassFailure();
    FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
        *pipelines, *times, [&](PipelineOp pipeline) -> auto & {
          return getChildAnalysis<ScheduleAnalysis>(pipeline);
        });
    if (failed(timed))
      return signalPassFailure();
    size_t lineWidth = width > 0 ? static_cast<size_t>(width)
                                 : defaultWidth(output.getValue());
    // Deques: timelines refer to their elements.
    std::deque<schedule::Timing> timings;
    std::deque<schedule::Tail> tails;
    std::vector<schedule::Timeline> timelines;
    for (auto [pipeline, of] : llvm::zip_equal(*pipelines, *timed)) {
      bool slots = times->areUnset() && of.schedule.hasSlots();
      timings.push_back(slots ? schedule::slotTiming(of.problem, of.schedule)
                              : schedule::simulate(of.problem, of.schedule));
      timelines.push_back(
          {program::printable(std::string_view(pipeline.getSymName())),
           titleOf(pipeline), of.problem, of.schedule, timings.back(), slots,
           of.scale, lineWidth});
      if (slots || !schedule::hasTail(of.problem))
        continue;
      timelines.back().step = schedule::stepTime(of.problem, of.schedule);
      // Else updates are among the actions.
      if (!schedule::stepsOverlap(of.problem.updates))
        timelines.back().tail = &tails.emplace_back(schedule::tailOf(
            of.problem, of.schedule, timings.back(),
            schedule::stageReduces(of.problem, of.schedule, timings.back())));
    }
    // Caps come last: the timeline also shows what exceeds them.
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(timelines))) ||
        failed(checkCaps(*pipelines, *timed)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace chimera
