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

/// JSON in the Trace Event Format (Google), which Perfetto opens. A timeline is
/// a process and a worker is a thread.
///
/// - An action is a complete event with the arguments `worker`, `kind`,
///   `pipeline`, `stage` and `micro_batch`. If it covers several micro-batches
///   it also has `micro_batches`; if it is a part of one, `part` and `parts`.
/// - A message between workers is an arrow: a flow event "s" in the action that
///   produces the message, and a flow event "f" in the action that waits for
///   the message. Each message has its own `id`.
/// - If a message occupies a worker, there is also an event of the category
///   "message time": "send activation 0 to P1", "receive activation 0 from P0".
/// - The bytes that each worker keeps (Memory.h) are a counter.
///
/// `ts` and `dur` are in microseconds, as the format requires. For each
/// timeline, `otherData` has the unit of its costs or, if the unit is not a
/// duration, says that one unit or slot is shown as 1 us.
std::string renderChromeTrace(std::span<const Timeline> timelines);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_CHROMETRACE_H
