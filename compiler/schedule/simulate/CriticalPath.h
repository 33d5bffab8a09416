//===- CriticalPath.h - Why a simulation ends when it does ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_CRITICALPATH_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_CRITICALPATH_H

#include "compiler/schedule/simulate/DeviceStreams.h"
#include "compiler/schedule/simulate/StepGraph.h"

#include <algorithm>

namespace chimera::schedule {

/// Finds the critical path (Timing::criticalPath) of a simulation in which all
/// workers began at 0 and all actions ran, without receive windows. Keeps
/// references to the simulation's state.
template <typename Clock> class CriticalPath {
public:
  using Time = typename Clock::Time;

  /// `sent` has, by action id, the time at which the action's result left its
  /// worker. `streams` is null if messages run on links.
  CriticalPath(const StepGraph &graph, const Timing &timing,
               const std::vector<Time> &sent,
               const DeviceStreams<Clock> *streams)
      : graph(graph), timing(timing), sent(sent), streams(streams) {}

  std::vector<ActionRef> find() const {
    std::vector<ActionRef> path;
    ActionRef ref{-1, -1};
    std::vector<int32_t> last;
    for (size_t w = 0; w < timing.ends.size(); ++w) {
      last.push_back(static_cast<int32_t>(timing.ends[w].size()) - 1);
      if (last[w] >= 0 && timing.ends[w].back() == timing.makespan)
        ref = {static_cast<int32_t>(w), last[w]};
    }
    while (ref.index >= 0) {
      path.push_back(ref);
      last[ref.worker] = ref.index;
      ref = before(ref, last);
    }
    std::ranges::reverse(path);
    return path;
  }

private:
  /// The action that determined when the action at `ref`, or the receive before
  /// it, began: the worker became free after this action, or its message
  /// arrived, at exactly that time. Its index is -1 if there is none. `last`
  /// has, for each worker, the index of the last action that is possible.
  ActionRef before(const ActionRef &ref, std::span<const int32_t> last) const {
    const ActionRef previous = {ref.worker, ref.index - 1};
    const int64_t begin = graph.beginOf(timing, ref);
    if (ref.index > 0 && (beginsPair(graph.actionAt(previous)) ||
                          graph.freeAfter(timing, previous) == begin))
      return previous;
    const Action *action = &graph.actionAt(ref);
    const ActionRule *own = &graph.rules.ruleOf(*action);
    // A pair begins with the message that arrives last.
    if (beginsPair(*action) && !arrivesAt(*action, begin)) {
      action = &graph.actionAt({ref.worker, ref.index + 1});
      own = &graph.rules.ruleOf(*action);
    }
    const ActionRule &rule = *own;
    if (rule.otherStage == 0)
      return {ref.worker, -1};
    int64_t other = graph.rules.idOf(*action, rule) + rule.otherStage;
    int32_t sender = rule.sender;
    if (streams && rule.receivesMessage) {
      other = streams->causeOf(other);
      const Action cause = graph.rules.actionIds().action(other);
      sender = graph.problem.pipelines[cause.pipeline].workers[cause.stage];
    }
    return {sender, lastBefore(Clock::ticks(sent[other]), timing.starts[sender],
                               last[sender])};
  }

  /// Whether the message that `action` needs has arrived at `time` and no
  /// earlier.
  bool arrivesAt(const Action &action, int64_t time) const {
    const ActionRule &rule = graph.rules.ruleOf(action);
    if (rule.otherStage == 0)
      return false;
    const int64_t other = graph.rules.idOf(action, rule) + rule.otherStage;
    return Clock::ticks(streams && rule.receivesMessage
                            ? streams->arrivalOf(other)
                            : sent[other] + static_cast<Time>(rule.flight)) ==
           time;
  }

  /// The last action that starts before `time`. Its index is at most `most` and
  /// probably near `most`, so the search goes back from `most` in steps that
  /// double.
  static int32_t lastBefore(int64_t time, std::span<const int64_t> starts,
                            int32_t most) {
    int32_t step = 1, least = most;
    for (; least > 0 && starts[least] >= time; step *= 2)
      least = std::max(least - step, 0);
    auto begin = starts.begin();
    auto at = std::lower_bound(begin + least, begin + most + 1, time);
    return static_cast<int32_t>(at - begin) - 1;
  }

  const StepGraph &graph;
  const Timing &timing;
  const std::vector<Time> &sent;
  const DeviceStreams<Clock> *streams;
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_CRITICALPATH_H
