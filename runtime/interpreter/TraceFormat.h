//===- TraceFormat.h - What ranks did, as a file of events ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The events of a run look like those that the compiler predicts
// (compiler/schedule/timeline/ChromeTrace.h), so that the same eyes and scripts
// read both, and what is late is found by comparing them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
#define CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H

#include "runtime/interpreter/Trace.h"

#include <optional>
#include <string>

namespace chimera::runtime {

/// JSON in the Trace Event Format (Google): a process for each copy, a thread
/// for each worker, and complete events with `ts` and `dur` in microseconds
/// from the first event on. Those of a worker do not overlap.
///
/// - An action has its kind as its category, and the arguments `worker`,
///   `kind`, `pipeline`, `stage`, `micro_batch`, with `micro_batches` where
///   there are several, and with `part` and `parts` where it is one of several.
///   With several steps it has its `step`, from 0, and micro-batches are
///   numbered through all of them.
/// - "update of stage 1" is of category `update`, "wait for all-reduce of stage
///   1" of `wait`.
/// - The waits for messages, "receive activation 3", are of `message wait`; the
///   posts of messages and the starts of all-reduces of `post`; loads and what
///   else a worker does of `other`.
/// - A message is an arrow: a flow event "s" in the action that made it and one
///   "f" in the action that waited for it.
///
/// `otherData` names the first step, from 1, and how many there are. Where
/// ranks had several clocks, `clockError` is by how many nanoseconds their
/// times may be wrong at most. `ranks` have the same clock by now; those that
/// kept other sections than the newest ones are cut to these.
std::string formatTrace(const program::ProgramT &program,
                        const std::vector<Trace> &ranks,
                        std::optional<int64_t> clockError);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
