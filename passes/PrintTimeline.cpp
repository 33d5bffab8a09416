//===- PrintTimeline.cpp - The schedule as a grid -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Timeline.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace chimera {

#define GEN_PASS_DEF_PRINTTIMELINEPASS
#include "passes/Passes.h.inc"

namespace {

/// Grids wider than this many columns are no longer read.
constexpr int64_t kWidest = 4096;

struct PrintTimeline : impl::PrintTimelinePassBase<PrintTimeline> {
  using PrintTimelinePassBase::PrintTimelinePassBase;

  void runOnOperation() override {
    if (forward < 0 || backward < 0 || weightGradient < 0 || latency < 0 ||
        (forward == 0 && (backward > 0 || weightGradient > 0 || latency > 0)) ||
        (weightGradient > 0 && weightGradient >= wholeBackward())) {
      getOperation().emitError(
          "chimera-print-timeline: expected times of at least 0, a forward with"
          " any other, and a weight-gradient below backward");
      return signalPassFailure();
    }
    std::string error;
    std::unique_ptr<llvm::ToolOutputFile> file =
        openOutputFile(output.getValue(), &error);
    if (!file) {
      getOperation().emitError("chimera-print-timeline: ") << error;
      return signalPassFailure();
    }
    for (auto pipeline : getOperation().getOps<PipelineOp>())
      if (failed(print(pipeline, file->os())))
        return signalPassFailure();
    file->keep();
    markAllAnalysesPreserved();
  }

  LogicalResult print(PipelineOp pipeline, llvm::raw_ostream &os) {
    FailureOr<schedule::Problem> problem = problemOf(pipeline);
    if (failed(problem))
      return failure();
    FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
    if (failed(schedule))
      return failure();
    setTimes(*problem);
    if (std::string problemError = schedule::check(*problem);
        !problemError.empty())
      return pipeline.emitOpError(problemError);
    if (failed(report(pipeline, "expected a valid schedule: ",
                      schedule::verify(*problem, *schedule))))
      return failure();
    bool slots = forward == 0 && schedule->hasSlots();
    schedule::Timing timing = slots ? schedule::slotTiming(*problem, *schedule)
                                    : schedule::simulate(*problem, *schedule);
    os << pipeline.getSymName() << ": " << pipeline.getSchedule() << ", "
       << problem->stages.size() << " stages, " << problem->microBatches()
       << " micro-batches\n";
    if (timing.makespan > kWidest)
      os << "(a grid of " << timing.makespan
         << " columns is not printed; give smaller times)\n";
    else
      os << schedule::renderGrid(*problem, *schedule, timing, slots);
    os << schedule::renderSummary(*problem, timing, slots);
    return success();
  }

  /// Given, twice the forward, or as long as a slot.
  int64_t wholeBackward() const {
    int64_t f = forward, b = backward;
    if (b > 0)
      return b;
    if (f > 0)
      return f > INT64_MAX / 2 ? INT64_MAX : 2 * f;
    return 1;
  }

  /// Uniform times as the options give them, one each by default.
  void setTimes(schedule::Problem &problem) {
    // Not `forward > 0 ? forward : 1`: an option beside an int becomes an int.
    int64_t f = forward, b = wholeBackward(), w = weightGradient;
    f = std::max<int64_t>(1, f);
    if (w == 0)
      w = std::max<int64_t>(1, b / 2);
    for (schedule::StageCost &cost : problem.stages)
      cost = {f, b, std::max<int64_t>(1, b - w), w};
    problem.link.alpha = latency;
  }
};

} // namespace
} // namespace chimera
