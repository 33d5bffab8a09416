//===- Times.h - Times to show schedules with -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORT_TIMES_H
#define CHIMERA_PASSES_REPORT_TIMES_H

#include "compiler/schedule/model/StatedTimes.h"
#include "compiler/schedule/text/TimeUnit.h"
#include "dialect/Decimal.h"
#include "passes/report/Reporting.h"
#include "passes/schedule/ScheduleAnalysis.h"

#include <utility>
#include <vector>

namespace chimera {

/// A source of the times of actions: a value of the option `costs`.
struct TimeSource {
  const char *name;
  const char *summary;
  schedule::StatedTimes::Scope scope;
};
std::span<const TimeSource> timeSources();

inline HelpText costsHelp() {
  return {helpOf("Times of actions", timeSources())};
}
inline HelpText unitHelp() {
  return {helpOf("Unit of the times that options give; with costs=stages "
                 "it is the pipeline's time_unit",
                 schedule::timeUnits())};
}

/// The options of a pass that select times.
struct TimeOptions {
  llvm::StringRef costs, unit;
  Decimal forward, backward, weightGradient, update; ///< 0 if not given
  /// The times of messages that the user gives, each with the name of its
  /// option.
  std::vector<std::pair<llvm::StringRef, Decimal>> messages;

  /// True if no option is given.
  bool areEmpty() const {
    return costs.empty() && unit.empty() && messages.empty() &&
           forward.digits == 0 && backward.digits == 0 &&
           weightGradient.digits == 0 && update.digits == 0;
  }
};

/// The base of a pass that has the options `timeOptions` of Passes.td.
template <typename Base> class WithTimes : public Base {
public:
  using Base::Base;

protected:
  TimeOptions timeOptions() const {
    TimeOptions all{this->costs.getValue(),
                    this->unit.getValue(),
                    this->forward,
                    this->backward,
                    this->weightGradient,
                    this->update,
                    {}};
    for (const auto *option :
         {&this->latency, &this->latencyPerMib, &this->send, &this->sendPerMib,
          &this->receive, &this->receivePerMib})
      if (option->hasValue())
        all.messages.emplace_back(option->ArgStr, option->getValue());
    return all;
  }
};

/// The times with which reports and timelines show schedules.
class Times {
public:
  /// Fails with a diagnostic that begins with `pass` if the options contradict
  /// each other.
  static mlir::FailureOr<Times>
  read(mlir::ModuleOp module, llvm::StringRef pass, const TimeOptions &options);

  /// True if the options give no times of actions. A timeline may then show
  /// slots instead.
  bool areDefault() const { return stated.areDefault(); }

  /// Sets the times of `problem`, which is the problem of `pipeline`. Returns
  /// the scale of its ticks.
  ///
  /// - Actions take the times of the options or, with costs=stages, their
  ///   stages' own times. If there are no such times, they take one tick each.
  /// - Messages take the times of the options. If the options give none,
  ///   messages take the description's times if actions take their stages' own
  ///   times. Otherwise messages take no time.
  ///
  /// Fails with a diagnostic if timeUnitOf fails.
  mlir::FailureOr<schedule::TimeScale> apply(PipelineOp pipeline,
                                             schedule::Problem &problem) const;

private:
  explicit Times(const schedule::TimeUnit &unit) : unit(&unit) {}

  /// Converts the times of `options` to ticks. Fails with a diagnostic if the
  /// times have too many digits.
  mlir::LogicalResult setTicks(mlir::ModuleOp module, llvm::StringRef pass,
                               const TimeOptions &options);

  const schedule::TimeUnit *unit; ///< of the stated times
  schedule::StatedTimes stated;
};

/// A pipeline's problem with its memory caps and the times to show, and its
/// schedule. The schedule may exceed the caps.
struct TimedSchedule : ScheduledProblem {
  schedule::TimeScale scale;
};

/// The timed schedule of each of `pipelines`. Fails with a diagnostic if a
/// pipeline is not scheduled, its times are too large to add up, or its
/// schedule is invalid.
mlir::FailureOr<std::vector<TimedSchedule>>
timedSchedules(llvm::ArrayRef<PipelineOp> pipelines, const Times &times,
               llvm::function_ref<ScheduleAnalysis &(PipelineOp)> analysisOf);

/// Runs checkCaps for each of `pipelines`. Afterwards fails if any call failed.
mlir::LogicalResult checkCaps(llvm::ArrayRef<PipelineOp> pipelines,
                              llvm::ArrayRef<TimedSchedule> timed);

} // namespace chimera

#endif // CHIMERA_PASSES_REPORT_TIMES_H
