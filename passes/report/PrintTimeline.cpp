//===- PrintTimeline.cpp - The schedule as text or picture ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/TimelineFormats.h"
#include "passes/Passes.h"
#include "passes/report/ShownSchedule.h"
#include "runtime/program/Output.h"

#include <deque>

using namespace mlir;

namespace chimera {

static HelpText timelineFormatHelp() {
  return {helpOf("Form of the timeline", schedule::timelineFormats())};
}

#define GEN_PASS_DEF_PRINTTIMELINEPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kPrintTimeline = "chimera-print-timeline";

struct PrintTimeline : WithTimes<impl::PrintTimelinePassBase<PrintTimeline>> {
  using WithTimes::WithTimes;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::TimelineFormat *chosen =
        findEntry(module, kPrintTimeline, "format", schedule::timelineFormats(),
                  StringRef(format));
    FailureOr<Times> times = Times::read(module, kPrintTimeline, timeOptions());
    if (width < 0)
      emitError() << "expected width of at least 1, or 0 for the terminal's, "
                     "got "
                  << width.getValue();
    FailureOr<SmallVector<PipelineOp>> pipelines =
        pipelinesOf(module, kPrintTimeline);
    if (!chosen || failed(times) || width < 0 || failed(pipelines) ||
        failed(checkMeasured(*pipelines)))
      return signalPassFailure();
    FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
        *pipelines, *times, [&](PipelineOp pipeline) -> auto & {
          return getChildAnalysis<ScheduleAnalysis>(pipeline);
        });
    if (failed(timed))
      return signalPassFailure();
    size_t lineWidth = width > 0       ? static_cast<size_t>(width)
                       : output == "-" ? outputWidth()
                                       : schedule::kLineWidth;
    // Must be a deque: timelines keep references to its elements.
    std::deque<ShownTimeline> shown;
    for (auto [pipeline, of] : llvm::zip_equal(*pipelines, *timed))
      shown.emplace_back(pipeline, of,
                         times->areDefault() && of.schedule.hasSlots(),
                         lineWidth);
    FailureOr<std::string> document = render(*chosen, *pipelines, shown);
    // Check memory caps last, so that the timeline also shows pipelines that
    // exceed them.
    if (failed(document) ||
        failed(writeDocument(module, kPrintTimeline, output.getValue(),
                             *document)) ||
        failed(checkCaps(*pipelines, *timed)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  InFlightDiagnostic emitError() {
    return getOperation().emitError() << kPrintTimeline << ": ";
  }

  /// Checks the options `measured` and `copy`. `copy` needs `measured`.
  /// `measured` needs a single pipeline, and the output must not overwrite the
  /// measured trace.
  LogicalResult checkMeasured(ArrayRef<PipelineOp> pipelines) {
    if (measured.empty() && copy.hasValue())
      return emitError() << "expected measured with copy, got only copy="
                         << copy.getValue();
    if (measured.empty())
      return success();
    if (pipelines.size() > 1)
      return emitError() << "expected one chimera.pipeline with measured, got "
                         << pipelines.size();
    if (output != "-" && program::areSameFile(output, measured))
      return emitError() << output << ": expected another file than measured";
    return success();
  }

  std::optional<int64_t> copyToShow() {
    return copy.hasValue() ? std::optional(copy.getValue()) : std::nullopt;
  }

  FailureOr<std::string> render(const schedule::TimelineFormat &form,
                                ArrayRef<PipelineOp> pipelines,
                                const std::deque<ShownTimeline> &shown) {
    if (!measured.empty())
      return renderSideBySide(form, pipelines.front(), shown.front().timeline,
                              {measured.getValue(), copyToShow()},
                              kPrintTimeline);
    std::vector<schedule::Timeline> timelines;
    timelines.reserve(shown.size());
    for (const ShownTimeline &one : shown)
      timelines.push_back(one.timeline);
    return form.render(timelines);
  }
};

} // namespace
} // namespace chimera
