//===- Report.h - Costs of a schedule, with formulas and bounds -*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_REPORT_H
#define CHIMERA_COMPILER_SCHEDULE_REPORT_H

#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/SteadyState.h"
#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/simulate/Windows.h"
#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// The costs of one schedule, with the closed forms that apply to it and its
/// lower bounds.
struct Report {
  std::string name;  ///< of the pipeline
  std::string title; ///< heading of the report's table
  /// The scheme's name. If the user gives the order, the pipeline's name for
  /// this order.
  std::string schedule;
  /// Null for an order from the user, which no formula describes.
  const Scheme *scheme;
  Options options; ///< of the scheme
  int64_t microBatchSize = 1;
  Problem problem;
  TimeScale scale; ///< the unit of all times
  Timing timing;
  /// Bytes of weights and optimizer states of each worker. They do not depend
  /// on the order of actions.
  std::vector<int64_t> residentBytes;
  /// Bytes of the arena and the stashes of each worker's program, which memory
  /// caps limit. Empty if the program is not allocated yet.
  std::vector<int64_t> allocatedBytes;
  /// The exceeded memory caps, as text. Empty if none is exceeded; otherwise
  /// the pipeline is refused.
  std::string overCap;
  /// The most activations (Timing::peakActivations) that a worker may have, if
  /// the user gives it.
  std::optional<int32_t> activationCap;
  /// The steady state, if steps overlap. `timing` then covers two steps, in
  /// which the pipeline also fills and drains.
  std::optional<SteadyState> steady;
  /// If the order has recomputes, the results for the same order without
  /// recomputes.
  std::optional<Timing> withoutRecompute;
  std::optional<SteadyState> steadyWithoutRecompute;
  std::vector<Bound> bounds;
  /// The receive window, given or chosen by the simulator, and the bytes of
  /// each worker's outstanding receives.
  int32_t receiveWindow = 1;
  std::vector<int64_t> receiveBytes;
  /// Pairs of receive window and makespan: for powers of two below
  /// `receiveWindow`, and for `receiveWindow`. Empty if messages have no time
  /// in flight. Windows that deadlock are left out.
  std::vector<std::pair<int32_t, int64_t>> windowMakespans;
  /// The makespan if each device runs its messages one at a time
  /// (DeviceOperations.h).
  int64_t deviceOrderMakespan = 0;
  /// By stage: the time of its gradient's all-reduce, and the number of buckets
  /// (0 if the stage has one replica). All fields from here to `earlyStages`
  /// are empty if steps overlap or if all-reduces take no time.
  std::vector<int64_t> allReduces, buckets;
  /// The same for the parameters that the first and the last stage share: the
  /// time of their all-reduce, and its number of buckets.
  std::optional<int64_t> tiedAllReduce, tiedBuckets;
  /// The time by which all-reduces make a step longer, for each policy of
  /// `kPolicies`.
  std::vector<double> unoverlapped;
  /// Stages whose all-reduce `eager_opt` starts early on some worker.
  std::vector<int32_t> earlyStages;
  /// The time of a step with the pipeline's policy.
  StepTime step;

  /// The closed forms that hold for these sizes and costs; null if there is
  /// none.
  const BubbleFormula *bubbleFormula = nullptr;
  const PeakFormula *peakFormula = nullptr;
  double bubbleValue = 0;                     ///< by bubbleFormula
  std::pair<int64_t, int64_t> peakValue = {}; ///< by peakFormula
  /// Further facts for the user, one line each.
  std::vector<std::string> notes;

  /// The workers that exceed `activationCap`.
  std::vector<int32_t> overActivationCap() const;
  double internalBubbleRatio() const;
  /// Samples in a step, over all data-parallel copies.
  int64_t samples() const;
  /// The share of a step in which a worker runs actions, averaged over the
  /// workers.
  double busyShare() const;
};

/// Simulates the schedule and compares the results with formulas and bounds.
/// `scheme` is the scheme that made this order with `options`. If it is null,
/// no formula is used. If `receiveWindow` is 0, the simulator chooses the
/// window. Requires that `problem` and `schedule` are valid and that the
/// schedule completes.
Report makeReport(std::string name, const Scheme *scheme,
                  const Options &options, const Problem &problem,
                  const Schedule &schedule, const TimeScale &scale = {},
                  int32_t receiveWindow = 0);

/// An output format of reports. The parser, the help text and the tests all
/// read `reportFormats()`.
struct ReportFormat {
  const char *name;
  const char *summary;
  /// One document that contains all reports.
  std::string (*render)(std::span<const Report> reports);
};

std::span<const ReportFormat> reportFormats();

/// One line for each report, sorted by time per sample, fastest first. A line
/// has the sizes, the step time and its parts, the idle share, and the largest
/// peaks of activations and bytes of a worker. Reports whose time units are
/// durations are in one table. Reports with any other time unit have a table
/// for each unit.
std::string renderComparison(std::span<const Report> reports);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_REPORT_H
