//===- SyncAndUpdate.cpp - All-reduces and updates of a step --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/SyncAndUpdate.h"

#include "compiler/schedule/CoreGroups.h"
#include "compiler/schedule/Occupations.h"
#include "compiler/schedule/UpdatesAfter.h"

#include <algorithm>
#include <cmath>

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
  addItems(problem, order);
  return order;
}

SyncAndUpdate syncAndUpdateAfter(const Problem &problem,
                                 const SyncAndUpdateOrder &order,
                                 const Timing &timing) {
  SyncAndUpdate syncAndUpdate;
  const std::vector<double> slowdown = slowdowns(problem);
  auto endOfUpdate = [&](size_t worker, int64_t begin, int64_t update) {
    return saturatingAdd(
        begin, static_cast<int64_t>(
                   std::ceil(static_cast<double>(update) * slowdown[worker])));
  };
  // For each worker, the time at which its previous all-reduce has ended and,
  // if all-reduces block, the updates after that all-reduce.
  std::vector<int64_t> free(timing.ends.size());
  std::vector<size_t> nextItem(timing.ends.size()); // index of the worker's
                                                    // next item
  for (const SyncAndUpdateOrder::AllReduce &allReduce : order.allReduces) {
    SyncAndUpdate::AllReduce &span = syncAndUpdate.allReduces.emplace_back();
    span.stage = allReduce.stage;
    span.isNorm = allReduce.isNorm;
    span.workers = allReduce.workers;
    for (size_t i = 0; i < span.workers.size(); ++i) {
      int32_t worker = span.workers[i];
      span.begin = std::max(
          {span.begin, free[worker], timing.ends[worker][allReduce.after[i]]});
    }
    span.end = saturatingAdd(span.begin, allReduce.time);
    for (int32_t worker : span.workers) {
      free[worker] = span.end;
      const std::vector<SyncAndUpdateOrder::WaitOrUpdate> &items =
          order.items[worker];
      size_t &next = nextItem[worker];
      for (++next; next < items.size() && items[next].pipeline; ++next)
        if (problem.blockingAllReduces)
          free[worker] = endOfUpdate(worker, free[worker], items[next].update);
    }
  }
  for (size_t w = 0; w < timing.ends.size(); ++w) {
    const std::vector<int64_t> &ends = timing.ends[w];
    int64_t now =
        syncAndUpdate.actionEnds.emplace_back(ends.empty() ? 0 : ends.back());
    std::vector<SyncAndUpdate::Work> &works = syncAndUpdate.work.emplace_back();
    for (const SyncAndUpdateOrder::WaitOrUpdate &item : order.items[w]) {
      SyncAndUpdate::Work work;
      work.begin = now;
      work.stage = item.stage;
      work.isNorm =
          !item.pipeline && syncAndUpdate.allReduces[item.allReduce].isNorm;
      work.pipeline = item.pipeline;
      work.end = item.pipeline ? endOfUpdate(w, now, item.update)
                               : syncAndUpdate.allReduces[item.allReduce].end;
      if (work.end > now)
        works.push_back(work);
      now = std::max(now, work.end);
    }
    syncAndUpdate.ends.push_back(now);
  }
  return syncAndUpdate;
}

SyncAndUpdate syncAndUpdateAfter(const Problem &problem,
                                 const Schedule &schedule,
                                 const Timing &timing) {
  return syncAndUpdateAfter(
      problem,
      syncAndUpdateOrderOf(problem, schedule,
                           gradientReduces(problem, schedule, timing)),
      timing);
}

SyncAndUpdate syncAndUpdateBetween(const Problem &problem,
                                   const Schedule &schedule,
                                   const Timing &timing) {
  SyncAndUpdate syncAndUpdate;
  const std::vector<std::vector<UpdateAfter>> updates =
      updatesAfter(problem, schedule);
  Occupations occupations = messageOccupationsOf(problem, schedule, timing);
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const std::vector<Action> &actions = schedule.workers[w];
    std::vector<SyncAndUpdate::Work> &works = syncAndUpdate.work.emplace_back();
    std::vector<int64_t> free = timing.ends[w]; // when the message of each
                                                // action has left the worker
    syncAndUpdate.actionEnds.push_back(free.empty() ? 0 : free.back());
    for (const Occupation &occupation : occupations[w])
      if (occupation.isSend)
        free[occupation.index] = occupation.end;
    int64_t &end =
        syncAndUpdate.ends.emplace_back(syncAndUpdate.actionEnds.back());
    for (size_t i = 0; i < actions.size() && !updates.empty(); ++i) {
      const Action &action = actions[i];
      SyncAndUpdate::Work work;
      work.stage = action.stage;
      work.begin = free[i];
      work.end = free[i] + updates[w][i].wait;
      end = work.end + updates[w][i].update;
      if (work.end > work.begin)
        works.push_back(work);
      work.begin = work.end;
      work.end = end;
      work.pipeline = action.pipeline;
      if (work.end > work.begin)
        works.push_back(work);
    }
  }
  return syncAndUpdate;
}

} // namespace chimera::schedule
