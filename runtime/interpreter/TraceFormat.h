//===- TraceFormat.h - Traces as a file of events ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file format for the events of a run. It is the format of the compiler's
// predicted events (compiler/schedule/timeline/ChromeTrace.h), so people and
// scripts can compare both and find what is late.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
#define CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H

#include "runtime/interpreter/Profile.h"
#include "runtime/interpreter/Trace.h"

#include <optional>
#include <string>

namespace chimera::runtime {

/// Returns JSON in the Trace Event Format (Google). Each copy is a process and
/// each worker a thread. Complete events have `ts` and `dur` in microseconds;
/// time 0 is the first event. Events of a worker do not overlap.
///
/// - An action has its kind as category and the arguments `worker`, `kind`,
///   `pipeline`, `stage` and `micro_batch`. It has `micro_batches` if it covers
///   several, and `part` and `parts` if it covers a part of one. If there are
///   several steps, it has its `step`, from 0, and micro-batches are numbered
///   over all steps.
/// - "update of stage 1" has the category `update`, "wait for all-reduce of
///   stage 1" has the category `wait`.
/// - Waits for messages ("receive activation 3") have the category `message
///   wait`. Posts of messages and starts of all-reduces have `post`. Loads and
///   everything else have `other`.
/// - A message is an arrow: a flow event "s" in the action that computed its
///   value, and a flow event "f" in the action that used it.
///
/// `otherData` has the number of the first step, from 1, the number of steps,
/// and, as in a profile, `threads` and `cores_per_rank`. If ranks had several
/// clocks, `clockError` is the maximum error of
/// their times in nanoseconds. Requires that the times of all `ranks` have been
/// converted to one clock. Sections that are older than the newest ones of all
/// ranks are left out.
std::string formatTrace(const program::ProgramT &program,
                        const std::vector<Trace> &ranks,
                        std::optional<int64_t> clockError,
                        const Computed &computed);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
