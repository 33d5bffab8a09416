//===- StepGraph.h - What takes time in a step ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph of a training step. A node is a part of the step that takes time.
// Its lane runs one node at a time:
//
//   node                       lane
//   receive, compute, send     the worker of the action
//   message in flight          none, or the devices of both workers
//                              (DeviceOperations.h)
//   all-reduce                 none: workers wait for its end
//   update                     the worker that has the weights
//
// For each action of a worker's order there is a chain of nodes: receive,
// compute, send and, if steps overlap, a wait for an all-reduce and an update.
// If a flush ends the step, waits and updates follow all actions
// (SyncAndUpdate.h).
//
// The graph does not store its nodes, because a step can have millions of
// actions. Actions that differ only in their micro-batch share a rule.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPGRAPH_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPGRAPH_H

#include "compiler/schedule/simulate/ActionRules.h"
#include "compiler/schedule/simulate/Timing.h"

namespace chimera::schedule {

/// The work of a worker after its last action that adds to a gradient, if steps
/// overlap: the worker waits for the gradient's all-reduce over the
/// data-parallel copies, then updates the weights.
struct UpdateAfter {
  int64_t wait = 0, update = 0;
};

/// The times of the nodes of an action.
struct ActionSpan {
  Span receive;
  int64_t begin, end; ///< of the computation
  Span send;
  int64_t update; ///< begin of the update after the action
  int64_t free;   ///< end of that update
};

class StepGraph {
public:
  /// Keeps references to `problem` and `schedule`. Requires that every action
  /// in the schedule belongs to the problem, is there once, and is on its
  /// worker.
  StepGraph(const Problem &problem, const Schedule &schedule);

  const Problem &problem;
  const Schedule &schedule;
  const ActionRules rules;
  /// The wait and update after each action, in the shape of Schedule::workers.
  /// Empty if a flush ends each step, or if all-reduces and updates take no
  /// time.
  const std::vector<std::vector<UpdateAfter>> updates;
  const bool hasJoined; ///< of `schedule`

  const Action &actionAt(const ActionRef &ref) const {
    return schedule.workers[ref.worker][ref.index];
  }
  UpdateAfter updateAfter(const ActionRef &ref) const {
    return updates.empty() ? UpdateAfter() : updates[ref.worker][ref.index];
  }
  /// The begin of the receive before the action, and the end of the action with
  /// its send and update. Both require that the action has run in `timing`,
  /// which is the result of a simulation of this graph.
  int64_t beginOf(const Timing &timing, const ActionRef &ref) const {
    return timing.receiveBegins.empty()
               ? timing.starts[ref.worker][ref.index] -
                     rules.ruleOf(actionAt(ref)).receive
               : timing.receiveBegins[ref.worker][ref.index];
  }
  int64_t freeAfter(const Timing &timing, const ActionRef &ref) const {
    if (!timing.updateEnds.empty())
      return timing.updateEnds[ref.worker][ref.index];
    const UpdateAfter after = updateAfter(ref);
    return timing.ends[ref.worker][ref.index] +
           rules.ruleOf(actionAt(ref)).send + after.wait + after.update;
  }
  /// Requires that the action has run in `timing`, which is the result of a
  /// simulation of this graph.
  ActionSpan spanOf(const Timing &timing, const ActionRef &ref) const;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_STEPGRAPH_H
