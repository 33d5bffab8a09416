//===- Report.cpp - The report on schedules -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/report/ShownSchedule.h"

using namespace mlir;

namespace chimera {

static HelpText reportFormatHelp() {
  return {helpOf("Form of the report", schedule::reportFormats())};
}

#define GEN_PASS_DEF_REPORTPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kReport = "chimera-report";

struct Report : WithTimes<impl::ReportPassBase<Report>> {
  using WithTimes::WithTimes;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::ReportFormat *chosen =
        findEntry(module, kReport, "format", schedule::reportFormats(),
                  StringRef(format));
    FailureOr<Times> times = Times::read(module, kReport, timeOptions());
    FailureOr<SmallVector<PipelineOp>> pipelines = pipelinesOf(module, kReport);
    if (!chosen || failed(times) || failed(pipelines))
      return signalPassFailure();
    FailureOr<std::vector<TimedSchedule>> timed = timedSchedules(
        *pipelines, *times, [&](PipelineOp pipeline) -> auto & {
          return getChildAnalysis<ScheduleAnalysis>(pipeline);
        });
    if (failed(timed))
      return signalPassFailure();
    std::vector<schedule::Report> reports;
    for (auto [pipeline, of] : llvm::zip_equal(*pipelines, *timed)) {
      FailureOr<schedule::Report> report = reportOf(pipeline, of);
      if (failed(report))
        return signalPassFailure();
      reports.push_back(std::move(*report));
    }
    // Check memory caps last, so that the report also has pipelines that exceed
    // them.
    if (failed(writeDocument(module, kReport, output.getValue(),
                             chosen->render(reports))) ||
        failed(checkCaps(*pipelines, *timed)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace chimera
