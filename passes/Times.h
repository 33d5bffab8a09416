//===- Times.h - Times to show schedules with -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_TIMES_H
#define CHIMERA_PASSES_TIMES_H

#include "compiler/schedule/TimeUnit.h"
#include "dialect/Decimal.h"
#include "passes/Reporting.h"
#include "passes/ScheduleAnalysis.h"

#include <utility>
#include <vector>

namespace chimera {

/// Where the times of actions come from: a word of the option `costs`.
struct TimeSource {
  /// What the times of the options are of, or that stages have their own.
  enum class Of { Stage, Worker, OwnCosts };

  const char *name;
  const char *summary;
  Of of;
};
std::span<const TimeSource> timeSources();

inline Help costsHelp() { return {helpOf("Times of actions", timeSources())}; }
inline Help unitHelp() {
  return {helpOf("Unit of times that are given by options; those of "
                 "costs=stages have the pipeline's time_unit",
                 schedule::timeUnits())};
}

/// The options of a pass that say which times to use.
struct TimeOptions {
  llvm::StringRef costs, unit;
  Decimal forward, backward, weightGradient, update; ///< 0 where not given
  /// Times of messages that are given, each with its option's name.
  std::vector<std::pair<llvm::StringRef, Decimal>> messages;
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

/// The time that an option for messages sets.
struct MessageOption {
  llvm::StringRef name;
  schedule::MessageTime &(*message)(schedule::Link &link);
  int64_t schedule::MessageTime::*time;
};

/// Times to show schedules with.
class Times {
public:
  /// Fails, with a diagnostic that begins with `pass`, where the options do not
  /// fit each other.
  static mlir::FailureOr<Times>
  read(mlir::ModuleOp module, llvm::StringRef pass, const TimeOptions &options);

  /// True if no times are given, so that slots may be shown instead.
  bool areUnset() const { return !areOwn() && forward == 0; }

  /// Gives `problem`, the pipeline's, these times, and returns what its ticks
  /// then are. Actions take the times of the options or their stages' own, one
  /// tick each if no times are given. Messages take what the options say, else,
  /// with the stages' own times, what the description says. Fails, with a
  /// diagnostic, where timeUnitOf does.
  mlir::FailureOr<schedule::TimeScale> apply(PipelineOp pipeline,
                                             schedule::Problem &problem) const;

private:
  Times(const TimeSource &source, const schedule::TimeUnit &unit)
      : source(&source), unit(&unit) {}

  /// True if each stage has the costs that the pipeline states.
  bool areOwn() const { return source->of == TimeSource::Of::OwnCosts; }
  bool arePerWorker() const { return source->of == TimeSource::Of::Worker; }

  /// Sets the times below. Fails where their digits do not fit.
  mlir::LogicalResult setTicks(mlir::ModuleOp module, llvm::StringRef pass,
                               const TimeOptions &options);
  /// The backward that is given, or twice the forward.
  int64_t wholeBackward() const;
  /// The part of `time` that one stage takes, in ticks cut into `factor` parts.
  int64_t timeOfStage(const schedule::Problem &problem, int64_t time,
                      int64_t factor) const;
  /// How many parts to cut each tick into, so that the parts of actions are
  /// whole wherever times need not be.
  int64_t refinement(const schedule::Problem &problem) const;
  void setStages(schedule::Problem &problem, int64_t factor) const;
  void setLinks(schedule::LinkClass &links, int64_t factor) const;

  const TimeSource *source;
  const schedule::TimeUnit *unit;
  /// In ticks, of which `perUnit` make a unit; 0 where not given.
  int64_t forward = 0, backward = 0, weightGradient = 0, update = 0;
  std::vector<std::pair<const MessageOption *, int64_t>> messages;
  int64_t perUnit = 1;
};

/// A pipeline's problem with its caps and with the times to show it with, and
/// its schedule, which may exceed the caps.
struct TimedSchedule : ScheduledProblem {
  schedule::TimeScale scale;
};

/// The same for each of `pipelines`. Fails, with a diagnostic, where one is not
/// scheduled, its times are too large to add up, or its schedule is not valid.
mlir::FailureOr<std::vector<TimedSchedule>>
timedSchedules(llvm::ArrayRef<PipelineOp> pipelines, const Times &times,
               llvm::function_ref<ScheduleAnalysis &(PipelineOp)> analysisOf);

/// checkCaps for each of `pipelines`. Fails after all of them where it fails
/// for any.
mlir::LogicalResult checkCaps(llvm::ArrayRef<PipelineOp> pipelines,
                              llvm::ArrayRef<TimedSchedule> timed);

} // namespace chimera

#endif // CHIMERA_PASSES_TIMES_H
