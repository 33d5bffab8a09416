//===- Report.h - What a schedule costs -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REPORT_H
#define CHIMERA_COMPILER_SCHEDULE_REPORT_H

#include "compiler/schedule/Bounds.h"
#include "compiler/schedule/Registry.h"
#include "compiler/schedule/StepTime.h"
#include "compiler/schedule/Steps.h"
#include "compiler/schedule/Windows.h"
#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// One schedule with its costs, the formulas for it and its lower bounds.
struct Report {
  std::string name;  ///< of the pipeline
  std::string title; ///< over its table: as a timeline's
  /// Whose order this is: the scheme's name, or the pipeline's own word.
  std::string schedule;
  /// Null for a schedule of one's own, which no formula is for.
  const Scheme *scheme;
  Options options; ///< of the scheme
  int64_t microBatchSize = 1;
  Problem problem;
  TimeScale scale; ///< of all times
  Timing timing;
  std::vector<int64_t> residentBytes; ///< of each worker, whatever it runs
  /// Arena and stashes of each worker, which a cap is held against; empty
  /// before they are allocated.
  std::vector<int64_t> allocatedBytes;
  /// Empty, or which caps are exceeded, for which the pipeline is refused.
  std::string overCap;
  /// Where steps overlap; `timing` is of two of them, filled and drained.
  std::optional<SteadyState> steady;
  /// The same order without its recomputes, where it has any.
  std::optional<Timing> kept;
  std::optional<SteadyState> keptSteady;
  std::vector<Bound> bounds;
  /// Given, or chosen by the simulator, and the bytes of each worker's
  /// receives.
  int32_t receiveWindow = 1;
  std::vector<int64_t> receiveBytes;
  /// The makespan with smaller windows and with that one; none where messages
  /// take no time on their way or a window is too small to end.
  std::vector<std::pair<int32_t, int64_t>> windowMakespans;
  /// Where messages take effect in one order on each device (DeviceOrder.h).
  int64_t deviceOrderMakespan = 0;
  /// Where a flush ends the step: how long the all-reduce of each stage's
  /// gradient takes, by what messages take, and in how many buckets, 0 where
  /// there is one replica; apart from them that of what first and last stage
  /// share; what they add to a step by each of `kPolicies`; and the stages that
  /// eager_opt starts early on some worker.
  std::vector<int64_t> allReduces, buckets;
  std::optional<int64_t> tiedAllReduce, tiedBuckets;
  std::vector<double> unoverlapped;
  std::vector<int32_t> earlyStages;
  /// What a step takes with the pipeline's policy.
  StepTime step;

  /// Null, or what holds for these sizes and times.
  const BubbleFormula *bubbleFormula = nullptr;
  const PeakFormula *peakFormula = nullptr;
  double bubbleValue = 0;                     ///< of bubbleFormula
  std::pair<int64_t, int64_t> peakValue = {}; ///< of peakFormula
  /// Further facts that a user should know: a line each.
  std::vector<std::string> notes;

  double internalBubbleRatio() const;
  /// Of a step, over all copies.
  int64_t samples() const;
  /// The share of a step in which a worker runs actions, on average.
  double busyShare() const;
};

/// Simulates and compares. `scheme` is null, or the one that made this order
/// with these options: only then formulas are looked for. Requires that
/// `problem` and `schedule` are valid and that the schedule ends.
/// `receiveWindow` is 0 where the simulator is to choose it.
Report makeReport(std::string name, const Scheme *scheme,
                  const Options &options, const Problem &problem,
                  const Schedule &schedule, const TimeScale &scale = {},
                  int32_t receiveWindow = 0);

/// A form of reports. Parser, help and tests all walk `reportFormats()`.
struct ReportFormat {
  const char *name;
  const char *summary;
  /// One document with all of them.
  std::string (*render)(std::span<const Report> reports);
};

std::span<const ReportFormat> reportFormats();

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REPORT_H
