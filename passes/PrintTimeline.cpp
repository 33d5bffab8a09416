//===- PrintTimeline.cpp - The schedule as text or picture ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Reporting.h"
#include "runtime/program/Program.h"

#include <deque>

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
    for (PipelineOp pipeline : *pipelines)
      if (failed(add(pipeline, *times, timed.emplace_back(), timelines)))
        return signalPassFailure();
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(timelines))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult add(PipelineOp pipeline, const Times &times, Timed &timed,
                    std::vector<schedule::Timeline> &timelines) {
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
    std::string name = pipeline.getSymName().str();
    std::string title =
        name + ": " + pipeline.getSchedule().str() + ", " +
        program::counted(problem.stages.size(), "stage") + ", " +
        program::counted(static_cast<uint64_t>(problem.microBatches()),
                         "micro-batch");
    timelines.push_back({std::move(name), std::move(title), problem, schedule,
                         timed.timing, slots, *unit});
    return success();
  }
};

} // namespace
} // namespace chimera
