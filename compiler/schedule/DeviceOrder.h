//===- DeviceOrder.h - Messages in one order on each device -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The makespan if each device runs its messages one at a time. NCCL runs the
// operations of a device one after another. So a message of a worker, sent or
// received, begins only after the worker's previous message is complete. If the
// worker at the other end of a message is late, all later messages of the
// worker wait:
//
//    P0  F0 ─► P1   is under way until P1 has posted its receive;
//    P0  B0 ─► P2   begins after that, however early P2 is ready.
//
// All workers post messages in one global order: by the time at which, without
// this rule, the actions that produce the messages end. So workers cannot wait
// for each other in a cycle. If a worker has several sends without an action
// between them, these sends and the first receive after them form one
// operation. No post after that receive belongs to the operation, because the
// action that waits for the receive waits for the whole operation. A worker can
// receive a message while it runs an action.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
#define CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H

#include "compiler/schedule/Timing.h"

namespace chimera::schedule {

/// The time at which the last action ends if each worker's messages run one at
/// a time, as described above. `timing` is the timing without this rule. No
/// action starts earlier than in `timing`, so the result is at least the
/// makespan of `timing`. If workers share cores, actions, updates, sends and
/// receives take as long as in `timing`. This is an approximation: a worker
/// that waits longer would leave its cores to the others. Takes linear time
/// except for sorting. Requires a valid schedule and a complete timing of it.
int64_t makespanInDeviceOrder(const Problem &problem, const Schedule &schedule,
                              const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
