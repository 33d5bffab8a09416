//===- SortedTrace.h - Events of a trace by copy and worker -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H
#define CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H

#include "compiler/schedule/StepTime.h"
#include "compiler/schedule/timeline/TraceReader.h"

#include <map>
#include <string_view>
#include <variant>

namespace chimera::schedule {

/// An event of a worker that is no action, in nanoseconds.
struct OtherEvent : Tail::Span {
  std::string name, category;
};

/// An action as it ran, numbered as in its step; steps count from 0.
struct RanAction : Tail::Span {
  Action action;
  int64_t step;
};

/// What one copy did.
struct CopyEvents {
  std::vector<std::vector<RanAction>> actions; ///< of each worker
  std::vector<std::vector<OtherEvent>> others;
};

/// The events of the workers of a problem.
struct SortedTrace {
  std::map<int64_t, CopyEvents> copies; ///< by process; one at least
  TraceHeader header;

  /// The last of its steps.
  int64_t lastStep() const;
};

/// Sorts the events of a trace. The result says what is wrong where the text is
/// no JSON or no trace, has no actions, has numbers that are missing or out of
/// range, or workers, stages, pipelines, micro-batches or copies that `problem`
/// has not.
std::variant<SortedTrace, std::string> sortTrace(std::string_view text,
                                                 const Problem &problem);

// Words of errors.

/// The numbers from 0 to `last`: "0 to 3", "0".
std::string rangeTo(int64_t last);

/// The name of an event in quotes, cut where it is long.
std::string quoted(const std::string &name);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SORTEDTRACE_H
