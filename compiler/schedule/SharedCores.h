//===- SharedCores.h - Workers that share cores -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On hosts more ranks may compute than there are cores. A node's cores are
// shared equally: while k of its n ranks compute, send or receive, each goes on
// by min(1, cores / k) of what it would alone. The work of an action is its
// cost; how long it takes depends on what the others do meanwhile. Messages on
// their way, and waits for them, take no core.
//
//   P0  FF FFFF .. .... BBBBBBBB BBBB    gpipe, forwards of 2, backwards of 4,
//   P1  .. FFFF FF BBBB BBBBBBBB ....    one core: where both run each takes
//   twice
//                                        its time
//
// What runs is one copy of the pipeline. Its workers have as much of their node
// as their number is of the ranks there: other copies do the same at the same
// time.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H
#define CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H

#include "compiler/schedule/Tail.h"

namespace chimera::schedule {

/// Workers of one copy that are on one node.
struct CoreGroup {
  int32_t workers = 0;
  double cores = 0; ///< that are there for them
};

/// The groups of a copy, in the order of its workers: worker w is of group
/// w / devices. None where each worker has a core of its own.
std::vector<CoreGroup> coreGroups(const Workload &workload);

/// True if some node has more ranks than cores.
bool sharesCores(const Workload &workload);

/// What a step takes at least in which each worker of a copy computes for so
/// long: as much as the one that does most, and what those that share cores do
/// together.
double leastStep(const Workload &workload, std::span<const int64_t> busy);

/// How many times longer work takes on each worker while all ranks of its node
/// compute; 1 where none share.
std::vector<double> slowdowns(const Workload &workload);

/// `simulate` where workers share cores: times are rounded to whole ticks.
/// `begins` are empty, or when each worker begins; `numbers` are null where
/// every receive is posted in time. Without idle times, peaks and a critical
/// path. Takes O(log workers) for each action.
Timing simulateSharing(const Problem &problem, const Schedule &schedule,
                       std::span<const int64_t> begins = {},
                       const MessageNumbers *numbers = nullptr);

/// So many steps with a flush and their tails one after another, all in one
/// simulation: a worker may begin a step while others, with which it shares
/// cores, are not done with the one before. Returns when each worker is done
/// with each step. Requires a schedule that ends.
std::vector<std::vector<int64_t>> simulateSharedSteps(const Problem &problem,
                                                      const Schedule &schedule,
                                                      const TailOrder &tail,
                                                      int32_t steps);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SHAREDCORES_H
