//===- SharedCores.h - Workers that share cores -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulation of hosts with fewer cores than ranks. The cores of a node are
// shared equally. While k ranks of a node compute, send or receive, each
// progresses at min(1, cores / k) of its full speed. The work of an action is
// its cost; the time that it takes depends on the other ranks of the node.
// Messages in flight, and waiting for messages, need no core.
//
// In this example, gpipe runs on one core, with forwards of 2 and backwards of
// 4. Each action takes twice its cost while both workers compute:
//
//    P0  FF FFFF .. .... BBBBBBBB BBBB
//    P1  .. FFFF FF BBBB BBBBBBBB ....
//
// Only one data-parallel copy is simulated, because the other copies do the
// same work at the same time. The copy has a share of each node's cores that is
// proportional to its number of ranks on the node.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H
#define CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H

#include "compiler/schedule/Messages.h"
#include "compiler/schedule/SyncAndUpdate.h"

namespace chimera::schedule {

/// Like `simulate`, for workers that share cores. Times are rounded to ticks.
/// If `begins` is empty, all workers begin at 0. If `numbers` is null, every
/// receive is posted in time. Idle times, peaks and critical path are not
/// computed. Takes O(log workers) for each action.
Timing simulateSharing(const Problem &problem, const Schedule &schedule,
                       std::span<const int64_t> begins = {},
                       const MessageNumbers *numbers = nullptr);

/// Simulates `steps` steps with a flush one after another, with their
/// all-reduces and updates (SyncAndUpdate.h). A worker may begin a step while
/// workers that share its cores still run the step before. Returns, by step and
/// worker, the time at which the worker has ended the step. Requires a schedule
/// that ends.
std::vector<std::vector<int64_t>>
simulateSharedSteps(const Problem &problem, const Schedule &schedule,
                    const SyncAndUpdateOrder &syncAndUpdate, int32_t steps);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H
