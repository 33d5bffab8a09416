//===- DeviceOrder.h - Messages in one order a device -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NCCL asks for one order of operations on a device. There all messages of a
// worker, sent and received, take effect one after another, each when the one
// before is complete. A message whose other end comes late then holds up those
// behind it:
//
//   P0  F0 ─► P1   is under way until P1 has posted its receive;
//   P0  B0 ─► P2   begins after that, however early P2 is ready.
//
// Both ends post a message in the order in which messages are ready: when,
// without this rule, the action that makes the message has ended. So nothing
// waits for itself. Sends of a worker with no action between them, and the
// first receive behind them, are one operation. Nothing after that receive is
// part of the operation, since an action that waits for the receive waits for
// the whole operation. A receive takes effect while an action of its worker is
// running.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
#define CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H

#include "compiler/schedule/Simulate.h"

namespace chimera::schedule {

/// When the last action ends if the messages of a worker take effect in one
/// order. At least the makespan of `timing`, which is that of the schedule
/// without this rule: nothing happens sooner than there. If workers share
/// cores, actions, updates and both ends of messages take as long as there; a
/// worker that this rule holds up would in truth leave its share to others.
/// Linear but for sorting. Requires a valid schedule and a complete timing of
/// it.
int64_t makespanInDeviceOrder(const Problem &problem, const Schedule &schedule,
                              const Timing &timing);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_DEVICEORDER_H
