//===- StepGraph.cpp - What takes time in a step --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/StepGraph.h"

#include "compiler/schedule/simulate/AllReduce.h"

#include <array>
#include <map>

namespace chimera::schedule {

/// See StepGraph::updates.
static std::vector<std::vector<UpdateAfter>>
updatesOf(const Problem &problem, const Schedule &schedule) {
  if (!stepsOverlap(problem.updates) || !hasSyncAndUpdate(problem))
    return {};
  auto updateOf = [&](int32_t worker, int32_t stage) -> UpdateAfter {
    int64_t bytes = problem.bytesOf(stage).gradient();
    int64_t buckets = bucketsOf(bytes, problem.bucketBytes).count;
    return {allReduceTime(problem, std::array{worker}, bytes, buckets),
            problem.stages[stage].update};
  };
  int32_t each =
      problem.updates == Updates::EachStep ? problem.microBatches() : 1;
  std::vector<std::vector<UpdateAfter>> updates;
  for (const std::vector<Action> &actions : schedule.workers) {
    auto worker = static_cast<int32_t>(updates.size());
    std::vector<UpdateAfter> &row = updates.emplace_back(actions.size());
    // The last action that adds to each gradient, by stage and number of the
    // update.
    std::map<std::pair<int32_t, int32_t>, size_t> last;
    for (size_t i = 0; i < actions.size(); ++i)
      if (addsToGradient(actions[i].kind))
        last[{actions[i].stage, actions[i].microBatch / each}] = i;
    for (auto [update, i] : last)
      row[i] = updateOf(worker, update.first);
  }
  return updates;
}

StepGraph::StepGraph(const Problem &problem, const Schedule &schedule)
    : problem(problem), schedule(schedule), rules(problem),
      updates(updatesOf(problem, schedule)),
      hasJoined(schedule::hasJoined(schedule)) {}

ActionSpan StepGraph::spanOf(const Timing &timing, const ActionRef &ref) const {
  auto [worker, index] = ref;
  ActionSpan span;
  span.begin = timing.starts[worker][index];
  span.end = timing.ends[worker][index];
  span.receive = {beginOf(timing, ref), span.begin};
  span.send = {span.end, timing.sendEnds.empty()
                             ? span.end + rules.ruleOf(actionAt(ref)).send
                             : timing.sendEnds[worker][index]};
  // A pair receives for its first action, then for its second one. It sends in
  // the same order.
  if (const ActionRef next = {worker, index + 1}; beginsPair(actionAt(ref))) {
    span.receive.end = beginOf(timing, next);
    span.send.begin = timing.ends[worker][index + 1];
  } else if (endsPair(schedule.workers[worker], index)) {
    span.receive.end = timing.starts[worker][index - 1];
    span.send.begin = timing.sendEnds[worker][index - 1];
  }
  span.update = span.send.end + updateAfter(ref).wait;
  span.free = freeAfter(timing, ref);
  return span;
}

} // namespace chimera::schedule
