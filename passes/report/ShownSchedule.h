//===- ShownSchedule.h - A pipeline's timeline and report -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the timeline and the report of a pipeline with its times. The passes
// that print timelines and reports, chimera-show and chimera-compile share
// these functions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORT_SHOWNSCHEDULE_H
#define CHIMERA_PASSES_REPORT_SHOWNSCHEDULE_H

#include "compiler/schedule/report/Report.h"
#include "compiler/schedule/timeline/TimelineFormats.h"
#include "passes/report/Times.h"

#include <optional>
#include <string>

namespace chimera {

/// Says which costs a pipeline states itself. Lowering may add costs to the
/// pipeline, so make this object before lowering.
struct StatedCosts {
  explicit StatedCosts(PipelineOp pipeline);

  /// True if times of actions are stated, by a machine or by stages. A model
  /// alone only states counts of operations, not times.
  bool hasTimes;
  /// True if the sizes of stages are stated, by a model or by stages.
  bool hasSizes;
};

/// Completes the times `given` that the user gives. If the user gives none, the
/// result has the stated times of the pipeline. If none are stated either, a
/// forward through all stages that a worker has in one direction takes 1. An
/// empty `costs` or `unit` means that the user does not give it.
TimeOptions completeTimes(PipelineOp pipeline, const StatedCosts &stated,
                          TimeOptions given = {});

/// The schedule of a partitioned or later pipeline with the times of `options`.
/// It has no sizes if the pipeline states neither sizes nor a memory cap.
/// `analysis` is the analysis of the pipeline. Fails, with a diagnostic, if
/// Times::read or timedSchedules does. Diagnostics about the options begin with
/// `tool`.
mlir::FailureOr<TimedSchedule> scheduleToShow(PipelineOp pipeline,
                                              const StatedCosts &stated,
                                              const TimeOptions &options,
                                              ScheduleAnalysis &analysis,
                                              llvm::StringRef tool);

/// A timeline together with the objects to which it refers.
struct ShownTimeline {
  /// The timeline also refers to `of`. With `slots` each action takes the slot
  /// that the schedule states; otherwise each action starts as soon as
  /// possible.
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

/// Describes a trace that `chimera-run --trace` wrote.
struct TraceToShow {
  llvm::StringRef path;
  /// The data-parallel copy to show. If not set, the copy with the longest
  /// step.
  std::optional<int64_t> copy;
  /// True if error messages use the names of a tool's options, such as --costs.
  /// If false, they use the names of a pass's options, such as costs.
  bool isOfTool = false;
};

/// One document with the timeline and the measured run. Fails, with a
/// diagnostic, if the times of the timeline are no durations, if the trace
/// cannot be read or has other actions or another order than the timeline, or
/// if the picture cannot be drawn (schedule::pictureError). If the trace names
/// another pipeline, emits a warning. Diagnostics about the file and the
/// picture begin with `tool`.
mlir::FailureOr<std::string>
renderSideBySide(const schedule::TimelineFormat &form, PipelineOp pipeline,
                 const schedule::Timeline &timeline, const TraceToShow &run,
                 llvm::StringRef tool);

/// The report of a pipeline. Fails, with a diagnostic, if schemeOf does.
mlir::FailureOr<schedule::Report> reportOf(PipelineOp pipeline,
                                           const TimedSchedule &timed);

} // namespace chimera

#endif // CHIMERA_PASSES_REPORT_SHOWNSCHEDULE_H
