//===- Times.h - Times to show schedules with -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORT_TIMES_H
#define CHIMERA_PASSES_REPORT_TIMES_H

#include "compiler/schedule/text/TimeUnit.h"
#include "dialect/Decimal.h"
#include "passes/report/Reporting.h"
#include "passes/schedule/ScheduleAnalysis.h"

#include <utility>
#include <vector>

namespace chimera {

/// A source of the times of actions: a value of the option `costs`.
struct TimeSource {
  /// Says to what the times of the options belong. Stage: to each stage.
  /// Worker: to all stages of a worker together. OwnCosts: the options give no
  /// times, because each stage has its own.
  enum class Scope { Stage, Worker, OwnCosts };

  const char *name;
  const char *summary;
  Scope scope;
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

/// An option that sets a field of a link.
struct MessageOption {
  const char *name;
  const char *summary;
  schedule::MessageTime &(*message)(schedule::Link &link);
  int64_t schedule::MessageTime::*time;
};

std::span<const MessageOption> messageOptions();

/// The times with which reports and timelines show schedules.
class Times {
public:
  /// Fails with a diagnostic that begins with `pass` if the options contradict
  /// each other.
  static mlir::FailureOr<Times>
  read(mlir::ModuleOp module, llvm::StringRef pass, const TimeOptions &options);

  /// True if the options give no times of actions. A timeline may then show
  /// slots instead.
  bool areDefault() const { return !areOwn() && forward == 0; }

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
  Times(const TimeSource &source, const schedule::TimeUnit &unit)
      : source(&source), unit(&unit) {}

  /// True if each stage has the costs that the pipeline states.
  bool areOwn() const { return source->scope == TimeSource::Scope::OwnCosts; }
  bool arePerWorker() const {
    return source->scope == TimeSource::Scope::Worker;
  }

  /// Sets `perUnit` and the times in ticks below. Fails with a diagnostic if
  /// the times have too many digits.
  mlir::LogicalResult setTicks(mlir::ModuleOp module, llvm::StringRef pass,
                               const TimeOptions &options);
  /// The given time of a backward. If none is given, twice the forward.
  int64_t wholeBackward() const;
  /// The time of one stage if an option has the value `time` (in ticks). The
  /// result is in smaller ticks: `factor` of them are one tick.
  int64_t timeOfStage(const schedule::Problem &problem, int64_t time,
                      int64_t factor) const;
  /// The number of smaller ticks into which each tick is divided, so that the
  /// times of stages and of parts of actions are whole numbers. It is 1 if the
  /// stages have their own times. It is also 1 if each stage has the given
  /// times and all of these are whole.
  int64_t refinement(const schedule::Problem &problem) const;
  void setStages(schedule::Problem &problem, int64_t factor) const;
  /// Converts the times of `links` from ticks of which a unit has `ownTicks` to
  /// ticks of which a unit has `factor` · `perUnit` · `ownTicks`. Then replaces
  /// the times that options give.
  void setLinks(schedule::LinkClass &links, int64_t factor,
                int64_t ownTicks) const;

  const TimeSource *source;
  const schedule::TimeUnit *unit;
  /// Times in ticks. `perUnit` ticks are one unit. A time that is not given is
  /// 0.
  int64_t forward = 0, backward = 0, weightGradient = 0, update = 0;
  std::vector<std::pair<const MessageOption *, int64_t>> messages;
  int64_t perUnit = 1;
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
