//===- ShownSchedule.h - A pipeline's timeline and report -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The timeline and the report of a pipeline with its times. The passes that
// print them, chimera-show and chimera-compile share these.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_SHOWNSCHEDULE_H
#define CHIMERA_PASSES_SHOWNSCHEDULE_H

#include "compiler/schedule/report/Report.h"
#include "passes/Times.h"

#include <optional>
#include <string>

namespace chimera {

/// The costs that a pipeline states itself. Lowering may add others, so this is
/// made first.
struct StatedCosts {
  explicit StatedCosts(PipelineOp pipeline);

  /// True if times of actions are stated, by a machine or by stages. The
  /// operations of a model alone are no times.
  bool hasTimes;
  /// True if the sizes of stages are stated, by a model or by stages.
  bool hasSizes;
};

/// The times with which a pipeline is shown if the user gives the times
/// `given`, or none. Unless the user gives times, these are the stated ones. If
/// none are stated, a forward through all stages that a worker has in one
/// direction takes 1. An empty `costs` or `unit` counts as not given.
TimeOptions completeTimes(PipelineOp pipeline, const StatedCosts &stated,
                          TimeOptions given = {});

/// The schedule of a partitioned or later pipeline with these times, and
/// without sizes if none are stated. `analysis` is the pipeline's. Fails, with
/// a diagnostic, if Times::read or timedSchedules does. `tool` begins
/// diagnostics about the options.
mlir::FailureOr<TimedSchedule> scheduleToShow(PipelineOp pipeline,
                                              const StatedCosts &stated,
                                              const TimeOptions &options,
                                              ScheduleAnalysis &analysis,
                                              llvm::StringRef tool);

/// A timeline together with everything that it refers to.
struct ShownTimeline {
  /// Refers to `of`. With `slots` each action takes the slot that the schedule
  /// states; otherwise each action starts as soon as possible.
  ShownTimeline(PipelineOp pipeline, const TimedSchedule &of, bool slots,
                size_t lineWidth);
  ShownTimeline(const ShownTimeline &) = delete;

  schedule::Timing timing;
  schedule::SyncAndUpdate syncAndUpdate;
  schedule::Occupations occupations;
  schedule::Timeline timeline;
};

/// Characters in a line of standard output: the width of the terminal, or
/// schedule::kLineWidth if standard output is no terminal.
size_t outputWidth();

/// A trace that `chimera-run --trace` wrote.
struct MeasuredRun {
  llvm::StringRef path;
  /// The data-parallel copy to show; unset: the copy with the longest step.
  std::optional<int64_t> copy;
  /// True if errors name the options of a tool, as --costs. Else they name
  /// those of a pass, as costs.
  bool isOfTool = false;
};

/// One document with the timeline and the measured run. Fails, with a
/// diagnostic, if the times are no durations, if the trace cannot be read, if
/// it is the trace of another pipeline and if there can be no such Picture as
/// the timeline asks for. `tool` begins diagnostics about the file and the
/// picture.
mlir::FailureOr<std::string>
renderSideBySide(const schedule::TimelineFormat &form, PipelineOp pipeline,
                 const schedule::Timeline &timeline, const MeasuredRun &run,
                 llvm::StringRef tool);

/// The report of a pipeline. Fails, with a diagnostic, if schemeOf does.
mlir::FailureOr<schedule::Report> reportOf(PipelineOp pipeline,
                                           const TimedSchedule &timed);

} // namespace chimera

#endif // CHIMERA_PASSES_SHOWNSCHEDULE_H
