//===- TraceFormat.h - Traces as a file of events ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file format for the events of a run. The compiler writes its predicted
// events in the same format (compiler/schedule/timeline/ChromeTrace.h). So
// people and scripts can compare the two files and find events that are late.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
#define CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H

#include "runtime/interpreter/EarlierRuns.h"
#include "runtime/interpreter/Profile.h"
#include "runtime/interpreter/Trace.h"

#include <optional>
#include <string>

namespace chimera::runtime {

/// Returns JSON in the Trace Event Format (Google). A data-parallel copy is
/// shown as a process and a worker as a thread. Complete events have `ts` and
/// `dur` in microseconds. Time 0 is the beginning of the first event. Events of
/// a worker do not overlap.
///
/// - An action has its kind as category and the arguments `worker`, `kind`,
///   `pipeline`, `stage` and `micro_batch`. If the action covers several
///   micro-batches, it has `micro_batches`, their number. If it covers a part
///   of a micro-batch, it has `part` and `parts`. If the trace has several
///   steps, the action has `step`, from 0, and the numbers of micro-batches
///   continue from step to step.
/// - "update of stage 1" has the category `update`, "wait for all-reduce of
///   stage 1" has the category `wait`.
/// - Waits for messages ("receive activation 3") have the category `message
///   wait`. Posts of messages and starts of all-reduces have `post`. Loads and
///   everything else have `other`.
/// - A message is shown as an arrow: a flow event "s" in the action that
///   computed the value, and a flow event "f" in the action that used the
///   value.
///
/// `otherData` has `first_step` (from 1), `steps` (their number), and, from
/// `conditions`, `threads` and `cores_per_rank`. If there are runs in
/// `earlier`, it also has `first_process`, the process of copy 0, and a list
/// `earlier` of their first_step, steps and first_process. Their events come
/// first, also in time. `clockError` is set if ranks had several clocks. It is
/// the maximum error of their times in nanoseconds, written as
/// `largest_half_round_trip_ns`.
///
/// A section is one execution of the prologue, the body or the epilogue
/// (Trace.h). If the ranks ended at different steps, only the last sections are
/// shown: as many as the rank with the most sections has, counted back from the
/// newest section of any rank.
///
/// Requires that the times of all `ranks` have been converted to one clock.
std::string formatTrace(const program::ProgramT &program,
                        const std::vector<Trace> &ranks,
                        std::optional<int64_t> clockError,
                        const RunConditions &conditions,
                        const EarlierTrace &earlier = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_TRACEFORMAT_H
