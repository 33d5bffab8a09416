//===- SyncAndUpdate.cpp - All-reduces and updates of a step --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/SyncAndUpdate.h"

#include <algorithm>
#include <utility>

namespace chimera::schedule {

int64_t SyncAndUpdate::end() const {
  return ends.empty() ? 0 : std::ranges::max(ends);
}

/// Adds the updates of all replicas of `stage`, which begin after an
/// all-reduce.
static void addUpdates(const Problem &problem, int32_t stage, size_t allReduce,
                       SyncAndUpdateOrder &order) {
  for (size_t p = 0; p < problem.pipelines.size(); ++p)
    order.items[problem.pipelines[p].workers[stage]].push_back(
        {allReduce, stage, static_cast<int32_t>(p),
         problem.stages[stage].update});
}

/// Adds the inputs of each all-reduce, and its start on each worker.
static void addInputs(SyncAndUpdateOrder &order) {
  order.starts.resize(order.items.size());
  // For each worker, the index of its last all-reduce that is added, or -1.
  std::vector<int32_t> last(order.items.size(), -1);
  for (size_t i = 0; i < order.allReduces.size(); ++i) {
    SyncAndUpdateOrder::AllReduce &allReduce = order.allReduces[i];
    for (size_t part = 0; part < allReduce.workers.size(); ++part) {
      int32_t worker = allReduce.workers[part];
      int32_t previous = std::exchange(last[worker], static_cast<int32_t>(i));
      order.starts[worker].push_back({allReduce.after[part], last[worker]});
      ++allReduce.inputs;
      if (previous < 0)
        continue;
      ++allReduce.inputs;
      order.allReduces[previous].next.push_back(last[worker]);
    }
  }
  for (std::vector<SyncAndUpdateOrder::Start> &starts : order.starts)
    std::ranges::stable_sort(starts, {}, &SyncAndUpdateOrder::Start::after);
}

/// Adds the waits and updates of each worker. A worker waits for its
/// all-reduces in the order of `order.allReduces`. The worker updates its
/// replicas of a stage after the last all-reduce of that stage or, if gradients
/// are clipped, all its replicas after the all-reduce of the norm.
static void addItems(const Problem &problem, SyncAndUpdateOrder &order) {
  auto last = static_cast<int32_t>(problem.stages.size()) - 1;
  // For each stage, the number of its all-reduces that are not added yet.
  std::vector<int32_t> missing(problem.stages.size(), 1);
  if (problem.tiedBytes > 0)
    ++missing.front(), ++missing.back();
  std::vector<int32_t> complete; // the stages in the order of their updates
  for (size_t i = 0; i < order.allReduces.size(); ++i) {
    const SyncAndUpdateOrder::AllReduce &allReduce = order.allReduces[i];
    for (int32_t worker : allReduce.workers)
      order.items[worker].push_back({i, allReduce.stage, std::nullopt});
    if (allReduce.isNorm) {
      for (int32_t stage : complete)
        addUpdates(problem, stage, i, order);
      continue;
    }
    std::vector<int32_t> stages = {0, last};
    if (allReduce.stage)
      stages = {*allReduce.stage};
    for (int32_t stage : stages)
      if (--missing[stage] == 0) {
        complete.push_back(stage);
        if (!problem.clips)
          addUpdates(problem, stage, i, order);
      }
  }
}

/// The all-reduce of the norm. Its time does not include the computation of the
/// squares.
static SyncAndUpdateOrder::AllReduce normReduceOf(const Problem &problem,
                                                  const Schedule &schedule) {
  constexpr int64_t kNormBytes = 8;
  SyncAndUpdateOrder::AllReduce allReduce;
  allReduce.isNorm = true;
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    if (schedule.workers[w].empty())
      continue; // a worker without a stage
    allReduce.workers.push_back(static_cast<int32_t>(w));
    allReduce.after.push_back(static_cast<int32_t>(schedule.workers[w].size()) -
                              1);
  }
  allReduce.time = allReduceTime(problem, allReduce.workers, kNormBytes,
                                 /*buckets=*/1);
  return allReduce;
}

SyncAndUpdateOrder
syncAndUpdateOrderOf(const Problem &problem, const Schedule &schedule,
                     const std::vector<GradientReduce> &reduces) {
  SyncAndUpdateOrder order;
  order.items.resize(schedule.workers.size());
  for (const GradientReduce &reduce : reduces) {
    SyncAndUpdateOrder::AllReduce &allReduce = order.allReduces.emplace_back();
    allReduce.stage = reduce.stage;
    allReduce.workers = reduce.workers();
    for (const GradientReduce::Contribution &contribution :
         reduce.contributions) {
      const bool isEager =
          problem.policy == AllReducePolicy::Eager ||
          (problem.policy == AllReducePolicy::EagerOpt && contribution.isIdle);
      const bool now = isEager && !problem.blockingAllReduces;
      auto last =
          static_cast<int32_t>(schedule.workers[contribution.worker].size()) -
          1;
      allReduce.after.push_back(now ? contribution.lastAction : last);
    }
    allReduce.time =
        allReduceTime(problem, allReduce.workers, reduce.bytes, reduce.buckets);
  }
  if (problem.clips && !reduces.empty())
    order.allReduces.push_back(normReduceOf(problem, schedule));
  addInputs(order);
  addItems(problem, order);
  return order;
}

} // namespace chimera::schedule
