//===- ChromeTrace.h - A schedule as a trace --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_CHROMETRACE_H
#define CHIMERA_COMPILER_SCHEDULE_CHROMETRACE_H

#include "compiler/schedule/timeline/Timeline.h"

namespace chimera::schedule {

/// JSON in the Trace Event Format (Google), which Perfetto opens: a process for
/// each timeline, a thread for each worker, and one complete event an action,
/// with `worker`, `kind`, `pipeline`, `stage` and `micro_batch` as its
/// arguments, with `micro_batches` where there are several and with `part` and
/// `parts` where it is one of several. A message between workers is an arrow: a
/// flow event "s" in the action that makes it and one "f" in the action that
/// waits for it, with an `id` that no other message has. Where a message
/// occupies a worker, an event of the category "message time" does so too:
/// "send activation 0 to P1", "receive activation 0 from P0". The bytes that a
/// worker holds (Memory.h) are a counter for each worker. `ts` and `dur` are in
/// microseconds, as the format wants; `otherData` says what a unit of time of
/// each timeline is in them.
std::string renderChromeTrace(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_CHROMETRACE_H
