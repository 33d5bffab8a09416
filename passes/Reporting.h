//===- Reporting.h - What reports and timelines share -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the passes that show schedules share: options that take a word of a
// table, times to show a schedule with, and a document to write.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORTING_H
#define CHIMERA_PASSES_REPORTING_H

#include "compiler/schedule/Timeline.h"
#include "dialect/Decimal.h"
#include "passes/Bridge.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <memory>
#include <optional>
#include <span>

namespace chimera {

/// Where the times of actions come from: a word of the option `costs`.
struct TimeSource {
  const char *name;
  const char *summary;
  bool stages; ///< each stage its own, else those of the options
};
std::span<const TimeSource> timeSources();

/// "PURPOSE: name (summary), name (summary)", kept for ever: options refer to
/// their help text.
template <typename Entry>
llvm::StringRef helpOf(const char *purpose, std::span<const Entry> table) {
  static std::string text = [&] {
    std::string list;
    for (const Entry &entry : table)
      list += (list.empty() ? std::string(purpose) + ": " : ", ") + entry.name +
              " (" + entry.summary + ")";
    return list;
  }();
  return text;
}

/// Gives an option of a pass a help text that is made from a table.
struct Help {
  llvm::StringRef text;
  template <typename Option> void apply(Option &option) const {
    option.setDescription(text);
  }
};
inline Help costsHelp() { return {helpOf("Times of actions", timeSources())}; }
inline Help unitHelp() {
  return {helpOf("Unit of times that are given by options; those of "
                 "costs=stages have the pipeline's time_unit",
                 schedule::timeUnits())};
}

/// The entry of `table` that an option names. Null, with a diagnostic that
/// lists what is possible, where there is none.
template <typename Entry>
const Entry *choose(mlir::ModuleOp module, llvm::StringRef pass,
                    llvm::StringRef option, std::span<const Entry> table,
                    llvm::StringRef name) {
  std::string names;
  for (const Entry &entry : table) {
    if (name == entry.name)
      return &entry;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  module.emitError() << pass << ": expected " << option << " to be one of "
                     << names << ", got \"" << name << "\"";
  return nullptr;
}

/// The options of a pass that say which times to use; 0 where a stage's is not
/// given.
template <typename Number> struct TimesOf {
  Number forward, backward, weightGradient;
  /// In the order of linkOptionNames().
  std::array<std::optional<Number>, 6> link;
};
struct TimeOptions {
  llvm::StringRef costs, unit;
  TimesOf<Decimal> times;
};
/// What messages take: latency, send and receive, each followed by its time for
/// a mebibyte.
std::span<const llvm::StringRef> linkOptionNames();

/// The value of an option of a pass where it is given.
template <typename Option> std::optional<Decimal> given(const Option &option) {
  return option.hasValue() ? std::optional<Decimal>(option.getValue())
                           : std::nullopt;
}

/// Times to show schedules with.
class Times {
public:
  /// Fails, with a diagnostic that begins with `pass`, where the options do not
  /// fit each other. Where a time is not whole, all are shown in a part of
  /// their unit in which they are, which a remark says.
  static mlir::FailureOr<Times>
  read(mlir::ModuleOp module, llvm::StringRef pass, const TimeOptions &options);

  /// True if no times are given, so that slots may be shown instead.
  bool areUnset() const { return !source->stages && times.forward == 0; }
  /// That of the options, or with the stages' own times the pipeline's, or the
  /// part of it in which all times are whole.
  mlir::FailureOr<const schedule::TimeUnit *> unitOf(PipelineOp pipeline) const;

  /// Gives `problem` these times: those of the options or its stages' own, one
  /// each if none are given. Messages take what the options say, else, with the
  /// stages' own times, what the description says.
  void apply(schedule::Problem &problem) const;

private:
  /// A part of a unit of time, with the name that it points to.
  struct PartOfUnit {
    std::string name;
    schedule::TimeUnit unit;
  };

  Times(const TimeSource &source, const schedule::TimeUnit &unit)
      : source(&source), timeUnit(&unit) {}

  mlir::LogicalResult scale(mlir::ModuleOp module, llvm::StringRef pass,
                            const TimesOf<Decimal> &given);

  TimesOf<int64_t> times;
  const TimeSource *source;
  const schedule::TimeUnit *timeUnit;
  /// How many of the units that times are in make one of `timeUnit`.
  int64_t perUnit = 1;
  /// By unit, in the order of schedule::timeUnits(); null if that is 1.
  std::shared_ptr<const std::vector<PartOfUnit>> parts;
};

/// "look: chimera {concatenation = halving}, 4 stages, 8 micro-batches,
/// split_backward": a pipeline's sizes and, as its description spells them,
/// those options of its schedule that are not left as they are by default.
std::string titleOf(PipelineOp pipeline);

/// A pipeline's problem, with its caps and the times to show it with, and its
/// schedule, which may exceed the caps (see holdCaps).
/// Fails, with a diagnostic, where the pipeline is not scheduled, the times are
/// too large to add up, or the schedule is not valid.
mlir::FailureOr<ScheduledProblem> timedSchedule(PipelineOp pipeline,
                                                const Times &times);

/// The module's pipelines. Fails, with a diagnostic of `pass`, if it has none.
mlir::FailureOr<llvm::SmallVector<PipelineOp>>
pipelinesOf(mlir::ModuleOp module, llvm::StringRef pass);

/// Writes `text` to the file `path`, - for standard output. Fails, with a
/// diagnostic that begins with `pass`, where that cannot be done; a file is
/// then as it was.
mlir::LogicalResult writeDocument(mlir::ModuleOp module, llvm::StringRef pass,
                                  llvm::StringRef path,
                                  const std::string &text);

} // namespace chimera

#endif // CHIMERA_PASSES_REPORTING_H
