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
    FailureOr<Times> times =
        Times::read(module, kPass,
                    {costs.getValue(), unit.getValue(), forward, backward,
                     weightGradient, latency});
    if (!chosen || failed(times))
      return signalPassFailure();
    std::vector<schedule::Report> reports;
    for (auto pipeline : module.getOps<PipelineOp>())
      if (failed(add(pipeline, *times, reports)))
        return signalPassFailure();
    if (failed(writeDocument(module, kPass, output.getValue(),
                             chosen->render(reports))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult add(PipelineOp pipeline, const Times &times,
                    std::vector<schedule::Report> &reports) {
    FailureOr<schedule::Problem> problem = problemOf(pipeline);
    if (failed(problem))
      return failure();
    FailureOr<schedule::Schedule> schedule = scheduleOf(pipeline);
    if (failed(schedule))
      return failure();
    FailureOr<SchemeChoice> choice = schemeOf(pipeline);
    if (failed(choice))
      return failure();
    times.apply(*problem);
    if (std::string error = schedule::check(*problem); !error.empty())
      return pipeline.emitOpError(error);
    if (failed(report(pipeline, "expected a valid schedule: ",
                      schedule::verify(*problem, *schedule))))
      return failure();
    reports.push_back(schedule::makeReport(
        pipeline.getSymName().str(), *choice->scheme, choice->options,
        static_cast<int32_t>(pipeline.getDataParallel()), *problem, *schedule,
        times.unit()));
    return success();
  }
};

} // namespace
} // namespace chimera
