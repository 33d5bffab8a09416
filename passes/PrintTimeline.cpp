//===- PrintTimeline.cpp - The schedule as text or picture ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Reporting.h"

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

/// What a timeline refers to.
struct Timed {
  ScheduledProblem of;
  schedule::Timing timing;
};

/// The width of the terminal that `output` is, or what stands for it.
size_t defaultWidth(StringRef output) {
  winsize size = {};
  if (output == "-" && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    return size.ws_col;
  return schedule::kLineWidth;
}

struct PrintTimeline : impl::PrintTimelinePassBase<PrintTimeline> {
  using PrintTimelinePassBase::PrintTimelinePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::TimelineFormat *chosen =
        choose(module, kPass, "format", schedule::timelineFormats(),
               StringRef(format));
    FailureOr<Times> times = Times::read(
        module, kPass,
        {costs.getValue(),
         unit.getValue(),
         {forward,
          backward,
          weightGradient,
          {given(latency), given(latencyPerMib), given(send), given(sendPerMib),
           given(receive), given(receivePerMib)}}});
    FailureOr<SmallVector<PipelineOp>> pipelines = pipelinesOf(module, kPass);
    if (!chosen || failed(times) || failed(pipelines))
      return signalPassFailure();
    // A deque: timelines refer to what stands in it.
    std::deque<Timed> timed;
    std::vector<schedule::Timeline> timelines;
    if (width < 0) {
      module.emitError() << kPass
                         << ": expected width of at least 1, or 0 for "
                            "the terminal's, got "
                         << width.getValue();
      return signalPassFailure();
    }
    size_t lineWidth = width > 0 ? static_cast<size_t>(width)
                                 : defaultWidth(output.getValue());
    for (PipelineOp pipeline : *pipelines)
      if (failed(add(pipeline, *times, lineWidth, timed.emplace_back(),
                     timelines)))
        return signalPassFailure();
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(timelines))))
      return signalPassFailure();
    // Now that it can be seen what exceeds them.
    bool fit = true;
    for (auto [pipeline, shown] : llvm::zip(*pipelines, timed))
      fit &= succeeded(holdCaps(pipeline, shown.of));
    if (!fit)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult add(PipelineOp pipeline, const Times &times, size_t lineWidth,
                    Timed &timed, std::vector<schedule::Timeline> &timelines) {
    FailureOr<ScheduledProblem> found = timedSchedule(pipeline, times);
    FailureOr<const schedule::TimeUnit *> unit = times.unitOf(pipeline);
    if (failed(found) || failed(unit))
      return failure();
    timed.of = std::move(*found);
    const schedule::Problem &problem = timed.of.problem;
    const schedule::Schedule &schedule = timed.of.schedule;
    bool slots = times.areUnset() && schedule.hasSlots();
    timed.timing = slots ? schedule::slotTiming(problem, schedule)
                         : schedule::simulate(problem, schedule);
    timelines.push_back({pipeline.getSymName().str(), titleOf(pipeline),
                         problem, schedule, timed.timing, slots, *unit,
                         lineWidth});
    return success();
  }
};

} // namespace
} // namespace chimera
