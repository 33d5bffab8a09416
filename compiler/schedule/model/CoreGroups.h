//===- CoreGroups.h - Workers that share the cores of a node ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_MODEL_COREGROUPS_H
#define CHIMERA_COMPILER_SCHEDULE_MODEL_COREGROUPS_H

#include "compiler/schedule/model/Problem.h"

namespace chimera::schedule {

/// The workers of one data-parallel copy that are on the same node.
struct CoreGroup {
  int32_t workers = 0;
  double cores = 0; ///< their share of the node's cores
};

/// The groups of one copy, in the order of its workers: worker w is in group w
/// / Node::devices, rounded down. Empty if each worker has a core of its own.
std::vector<CoreGroup> coreGroups(const Workload &workload);

/// True if a node has fewer cores than ranks.
bool sharesCores(const Workload &workload);

/// The least time of a step in which each worker of a copy computes for the
/// time in `busy`: the largest of these times, or the work of a group divided
/// by its cores if that is more.
double minStepTime(const Workload &workload, std::span<const int64_t> busy);

/// For each worker, the factor by which work takes longer while all ranks of
/// its node compute; 1 if cores are not shared.
std::vector<double> slowdowns(const Workload &workload);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_MODEL_COREGROUPS_H
