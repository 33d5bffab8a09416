//===- Report.cpp - The report on schedules -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/Report.h"
#include "passes/Described.h"
#include "passes/Passes.h"
#include "passes/Times.h"
#include "passes/Title.h"
#include "passes/Workers.h"
#include "runtime/program/Printable.h"

using namespace mlir;

namespace chimera {

static Help reportFormatHelp() {
  return {helpOf("Form of the report", schedule::reportFormats())};
}

#define GEN_PASS_DEF_REPORTPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kPass = "chimera-report";

struct Report : WithTimes<impl::ReportPassBase<Report>> {
  using WithTimes::WithTimes;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::ReportFormat *chosen = choose(
        module, kPass, "format", schedule::reportFormats(), StringRef(format));
    FailureOr<Times> times = Times::read(module, kPass, timeOptions());
    FailureOr<SmallVector<PipelineOp>> pipelines = pipelinesOf(module, kPass);
    if (!chosen || failed(times) || failed(pipelines))
      return signalPassFailure();
    FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
        *pipelines, *times, [&](PipelineOp pipeline) -> auto & {
          return getChildAnalysis<ScheduleAnalysis>(pipeline);
        });
    if (failed(timed))
      return signalPassFailure();
    std::vector<schedule::Report> reports;
    for (auto [pipeline, of] : llvm::zip_equal(*pipelines, *timed))
      if (failed(add(pipeline, of, reports)))
        return signalPassFailure();
    // Check memory caps last, so that the report also has pipelines that exceed
    // them.
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(reports))) ||
        failed(checkCaps(*pipelines, *timed)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  static LogicalResult add(PipelineOp pipeline, const TimedSchedule &timed,
                           std::vector<schedule::Report> &reports) {
    std::string_view name(scheduleNameOf(pipeline));
    // A given order, or a schedule name that is not in the registry, has no
    // scheme.
    SchemeChoice choice = {};
    if (schedule::findScheme(name)) {
      FailureOr<SchemeChoice> found = schemeOf(pipeline);
      if (failed(found))
        return failure();
      choice = std::move(*found);
    }
    schedule::Report &report = reports.emplace_back(schedule::makeReport(
        program::printable(std::string_view(pipeline.getSymName())),
        choice.scheme, choice.options, timed.problem, timed.schedule,
        timed.scale,
        static_cast<int32_t>(pipeline.getReceiveWindow().value_or(0))));
    report.schedule = program::printable(name);
    report.microBatchSize = static_cast<int64_t>(pipeline.getMicroBatchSize());
    report.title = titleOf(pipeline);
    for (WorkerOp worker : workersOf(pipeline))
      if (std::optional<uint64_t> bytes = worker.allocatedBytes())
        report.allocatedBytes.push_back(static_cast<int64_t>(*bytes));
    if (!recomputeOf(pipeline).empty() && timed.problem.recompute.empty())
      report.notes.push_back(
          "nothing is recomputed: each forward stands straight before its "
          "backward, or the order has no recomputes yet");
    return success();
  }
};

} // namespace
} // namespace chimera
