//===- DeviceOrder.h - Messages in one order on each device -----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The makespan if each device runs its messages one at a time. NCCL requires
// one order of operations on a device. All messages of a worker, sent or
// received, then take effect one after another, each after the one before is
// complete. If the other end of a message is late, all later messages of the
// worker wait:
//
//    P0  F0 ─► P1   is under way until P1 has posted its receive;
//    P0  B0 ─► P2   begins after that, however early P2 is ready.
//
// Both ends post messages in the order in which they are ready: by the time at
// which, without this rule, the actions that produce them end. So no cycle of
// waits can exist. Sends of a worker without an action between them form one
// operation, together with the first receive after them. The operation ends
// with that receive, because an action that waits for the receive waits for the
// whole operation. A receive takes effect while an action of its worker is
// running.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
#define CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H

#include "compiler/schedule/Simulate.h"

namespace chimera::schedule {

/// The time at which the last action ends if the messages of each worker take
/// effect in one order. `timing` is the timing without this rule. Nothing
/// happens earlier than in `timing`, so the result is at least its makespan. If
/// workers share cores, actions, updates, sends and receives take as long as in
/// `timing`. This is an approximation: a worker that waits longer would leave
/// its cores to the others. Takes linear time except for sorting. Requires a
/// valid schedule and a complete timing of it.
int64_t makespanInDeviceOrder(const Problem &problem, const Schedule &schedule,
                              const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
