//===- SortedTrace.h - Events of a trace by copy and worker -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H
#define CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H

#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/timeline/TraceReader.h"

#include <map>
#include <string_view>
#include <variant>

namespace chimera::schedule {

/// An event of a worker that is not an action. Times are in nanoseconds.
struct OtherEvent : Span {
  std::string name, category;
};

/// An action that ran, in nanoseconds. The micro-batch of `action` is numbered
/// within its step. Steps are numbered from 0.
struct MeasuredAction : Span {
  Action action;
  int64_t step;
};

/// All events of one data-parallel copy.
struct CopyEvents {
  std::vector<std::vector<MeasuredAction>> actions; ///< by worker
  std::vector<std::vector<OtherEvent>> others;
};

/// The events of a trace by copy and worker.
struct SortedTrace {
  std::map<int64_t, CopyEvents> copies; ///< by process number, at least one
  TraceHeader header;

  /// The number of the last step.
  int64_t lastStep() const;
};

/// Sorts the events of a trace by data-parallel copy, and then by worker. If
/// the trace has several runs, takes the events of the newest one.
/// Returns an error if the text is not JSON or not a trace, if it has no
/// actions, or if numbers are missing or out of range. Also returns an error if
/// the trace names a worker, stage, pipeline, micro-batch or copy that
/// `problem` does not have.
std::variant<SortedTrace, std::string> sortTrace(std::string_view text,
                                                 const Problem &problem);

// The functions below return parts of error texts.

/// The numbers from 0 to `last` as text: "0 to 3", or "0".
std::string rangeTo(int64_t last);

/// The name of an event in quotes. Long names are cut.
std::string quoted(const std::string &name);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H
