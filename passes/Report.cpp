//===- Report.cpp - What schedules cost -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Report.h"
#include "passes/Bridge.h"
#include "passes/Passes.h"
#include "passes/Reporting.h"

using namespace mlir;

namespace chimera {

static Help reportFormatHelp() {
  return {helpOf("Form of the report", schedule::reportFormats())};
}

#define GEN_PASS_DEF_REPORTPASS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kPass = "chimera-report";

struct Report : impl::ReportPassBase<Report> {
  using ReportPassBase::ReportPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const schedule::ReportFormat *chosen = choose(
        module, kPass, "format", schedule::reportFormats(), StringRef(format));
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
    std::vector<schedule::Report> reports;
    std::vector<ScheduledProblem> timed;
    for (PipelineOp pipeline : *pipelines)
      if (failed(add(pipeline, *times, timed, reports)))
        return signalPassFailure();
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(reports))))
      return signalPassFailure();
    // Now that it can be compared with those that fit.
    bool fit = true;
    for (auto [pipeline, of] : llvm::zip(*pipelines, timed))
      fit &= succeeded(holdCaps(pipeline, of));
    if (!fit)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult add(PipelineOp pipeline, const Times &times,
                    std::vector<ScheduledProblem> &all,
                    std::vector<schedule::Report> &reports) {
    FailureOr<SchemeChoice> choice = schemeOf(pipeline);
    if (failed(choice))
      return failure();
    FailureOr<ScheduledProblem> timed = timedSchedule(pipeline, times);
    FailureOr<const schedule::TimeUnit *> unit = times.unitOf(pipeline);
    if (failed(timed) || failed(unit))
      return failure();
    reports.push_back(schedule::makeReport(
        pipeline.getSymName().str(), *choice->scheme, choice->options,
        static_cast<int32_t>(pipeline.getDataParallel()), timed->problem,
        timed->schedule, **unit,
        static_cast<int32_t>(pipeline.getReceiveWindow().value_or(0))));
    reports.back().title = titleOf(pipeline);
    all.push_back(std::move(*timed));
    return success();
  }
};

} // namespace
} // namespace chimera
