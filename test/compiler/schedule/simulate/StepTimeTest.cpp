//===- StepTimeTest.cpp - The time of a whole step ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/StepTime.h"

#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace chimera::schedule {
namespace {

/// Sets the time of the all-reduce of each stage's gradient, if the stage has
/// two replicas. With more replicas it takes longer. Activations and input
/// gradients take no time to send.
void setSums(Case &c, const std::vector<int64_t> &times) {
  c.problem.link = {{0, 1, 1}};
  c.problem.bytes.clear();
  for (int64_t time : times)
    c.problem.bytes.push_back({time, 0, 0, 0, 0});
}

SyncAndUpdate syncAndUpdateOf(Case &c, const Timing &timing,
                              AllReducePolicy policy) {
  c.problem.policy = policy;
  return syncAndUpdateOf(c.problem, c.schedule, timing);
}

SyncAndUpdate syncAndUpdateOf(Case &c, AllReducePolicy policy) {
  return syncAndUpdateOf(c, simulate(c.problem, c.schedule), policy);
}

/// Calls `check` for every scheme with a flush, with all of its options, and
/// for some sizes.
template <typename Check> void forEachFlush(int32_t most, Check check) {
  for (const Scheme &scheme : schemes())
    for (int32_t d = 2; d <= most; ++d)
      for (const Choice &choice : choices(scheme, d))
        for (int32_t n : {1, d - 1, d, 2 * d + 1}) {
          if (!canPlan(scheme, d, n, choice))
            continue;
          SCOPED_TRACE(nameOf(scheme, d, n, choice));
          Case c = makeCase(scheme.name, d, n, {2, 4, 2, 2, 2}, false, choice);
          if (c.problem.updates == Updates::Flush)
            check(c);
        }
}

std::vector<int64_t> someTimes(const Case &c) {
  std::vector<int64_t> times;
  for (size_t s = 0; s < c.problem.stages.size(); ++s)
    times.push_back(1 + 5 * static_cast<int64_t>(s) % 7);
  return times;
}

/// If all-reduces start earlier, the step never ends later. If they take no
/// time, the step is not longer than its actions. It is at most longer by the
/// sum of all all-reduces.
TEST(SyncAndUpdate, IsShorterIfSumsStartEarlier) {
  forEachFlush(8, [](Case &c) {
    int64_t makespan = simulate(c.problem, c.schedule).makespan;
    setSums(c, std::vector<int64_t>(c.problem.stages.size()));
    for (auto [name, policy] : kPolicies)
      EXPECT_EQ(syncAndUpdateOf(c, policy).end(), makespan) << name;
    setSums(c, someTimes(c));
    std::vector<int64_t> lazy = syncAndUpdateOf(c, AllReducePolicy::Lazy).ends;
    std::vector<int64_t> opt =
        syncAndUpdateOf(c, AllReducePolicy::EagerOpt).ends;
    SyncAndUpdate eager = syncAndUpdateOf(c, AllReducePolicy::Eager);
    for (int32_t w = 0; w < c.problem.workers; ++w) {
      EXPECT_GE(lazy[w], opt[w]) << "worker " << w;
      EXPECT_GE(opt[w], eager.ends[w]) << "worker " << w;
    }
    int64_t sum = 0;
    for (const SyncAndUpdate::AllReduce &span : eager.allReduces)
      sum += span.end - span.begin;
    EXPECT_GE(eager.end(), makespan);
    EXPECT_LE(std::ranges::max(lazy), makespan + sum);
  });
}

/// Two pipelines, and each action takes one slot. Worker w < D/2 has stages w
/// and D-1-w. After its last backward of stage D-1-w it has D-1-2w more slots,
/// and it ends w slots before the step. These are the regions (a) and (c) of
/// Figure 6 of Chimera's paper. Only the part of all-reduces that does not fit
/// there makes the step longer.
TEST(SyncAndUpdate, IsTheTimeBeyondTheFreeRegions) {
  for (int32_t d = 2; d <= 16; d += 2)
    for (int64_t time : {1, 2, 5, 9, 30}) {
      Case c = makeCase("chimera", d, d);
      std::vector<int64_t> times;
      for (int32_t s = 0; s < d; ++s)
        times.push_back(time + s % 3);
      setSums(c, times);
      int64_t expected = 0;
      for (int32_t w = 0; w < d / 2; ++w) {
        int64_t x = std::max<int64_t>(0, times[d - 1 - w] - (d - 1 - 2 * w));
        expected = std::max(expected, x + times[w] - w);
      }
      // Use the times of slots. If actions started as soon as possible, there
      // would be more room.
      Timing timing = slotTiming(c.problem, c.schedule);
      EXPECT_EQ(syncAndUpdateOf(c, timing, AllReducePolicy::Eager).end() -
                    timing.makespan,
                expected)
          << "D=" << d << " time " << time;
    }
}

/// Each replica of a stage is updated once, by its worker. The update comes
/// after all all-reduces of the stage, after the worker's actions and after the
/// worker's previous update.
TEST(SyncAndUpdate, UpdatesEachReplicaAfterItsSum) {
  for (bool isTied : {false, true})
    forEachFlush(6, [&](Case &c) {
      auto stages = static_cast<int32_t>(c.problem.stages.size());
      setSums(c, someTimes(c));
      for (int32_t s = 0; s < stages; ++s) {
        c.problem.bytes[s].weights += 4;
        c.problem.stages[s].update = 3 + s;
      }
      c.problem.tiedBytes = isTied ? 2 : 0;
      Timing timing = simulate(c.problem, c.schedule);
      SyncAndUpdate syncAndUpdate =
          syncAndUpdateOf(c, timing, AllReducePolicy::Eager);
      std::map<std::pair<int32_t, int32_t>, int32_t> count;
      for (int32_t w = 0; w < c.problem.workers; ++w) {
        int64_t free = syncAndUpdate.actionEnds[w];
        for (const SyncAndUpdate::Work &work : syncAndUpdate.work[w]) {
          EXPECT_EQ(work.begin, free);
          free = work.end;
          if (!work.isUpdate())
            continue;
          int32_t stage = *work.stage;
          ++count[{*work.pipeline, stage}];
          EXPECT_EQ(w, c.problem.pipelines[*work.pipeline].workers[stage]);
          EXPECT_EQ(work.end - work.begin, 3 + stage);
          bool isEdge = stage == 0 || stage + 1 == stages;
          for (const SyncAndUpdate::AllReduce &sum : syncAndUpdate.allReduces)
            if (sum.stage ? *sum.stage == stage : isEdge) {
              EXPECT_GE(work.begin, sum.end);
            }
        }
        EXPECT_EQ(free, syncAndUpdate.ends[w]);
      }
      EXPECT_EQ(std::ssize(count), stages * std::ssize(c.problem.pipelines));
      for (auto [replica, times] : count)
        EXPECT_EQ(times, 1);
    });
}

/// The mean time of a step, computed in another way: the start of each action
/// is raised until it is not before anything for which the action waits.
/// Returns the mean of the last 48 of 97 steps. 48 is a multiple of 2, 3, 4, 6
/// and 8, so the mean is exact if the times repeat after so many steps.
double relaxedPeriod(const Case &c) {
  constexpr int32_t kSteps = 97;
  const Problem &problem = c.problem;
  std::vector<GradientReduce> reduces =
      gradientReduces(problem, c.schedule, simulate(problem, c.schedule));
  auto workers = static_cast<size_t>(problem.workers);
  using Key = std::tuple<Kind, int32_t, int32_t, int32_t>;
  std::vector<int64_t> begins(workers), firsts;
  for (int32_t step = 0; step < kSteps; ++step) {
    firsts.push_back(std::ranges::min(begins));
    std::vector<std::vector<int64_t>> ends;
    for (const std::vector<Action> &actions : c.schedule.workers)
      ends.emplace_back(actions.size());
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      std::map<Key, int64_t> done;
      for (size_t w = 0; w < workers; ++w)
        for (size_t i = 0; i < ends[w].size(); ++i) {
          const Action &a = c.schedule.workers[w][i];
          for (int32_t m = 0; m < a.microBatches; ++m) {
            int64_t &end = done[{a.kind, a.stage, a.microBatch + m, a.part}];
            end = std::max(end, ends[w][i]);
          }
        }
      for (size_t w = 0; w < workers; ++w) {
        int64_t free = begins[w];
        for (size_t i = 0; i < ends[w].size(); ++i) {
          const Action &a = c.schedule.workers[w][i];
          int32_t next = a.kind == Kind::Forward ? a.stage - 1 : a.stage + 1;
          for (int32_t m = 0; m < a.microBatches; ++m)
            if (auto other =
                    done.find({a.kind, next, a.microBatch + m, a.part});
                other != done.end())
              free = std::max(free, other->second);
          if (a.kind == Kind::Backward)
            free =
                std::max(free, done[{Kind::Forward, a.stage, a.microBatch, 0}]);
          free += problem.cost(a);
          isChanged |= ends[w][i] != free;
          ends[w][i] = free;
        }
      }
    }
    std::vector<int64_t> sums(workers), free;
    for (size_t w = 0; w < workers; ++w)
      free.push_back(ends[w].empty() ? begins[w] : ends[w].back());
    std::vector<int64_t> computed = free;
    for (const GradientReduce &reduce : reduces) {
      int64_t begin = 0;
      for (auto [w, last, isIdle] : reduce.contributions) {
        bool isEarly = problem.policy == AllReducePolicy::Eager ||
                       (problem.policy == AllReducePolicy::EagerOpt && isIdle);
        begin =
            std::max({begin, sums[w], isEarly ? ends[w][last] : computed[w]});
      }
      int64_t end = begin + allReduceTime(problem.link,
                                          std::ssize(reduce.contributions) *
                                              problem.width,
                                          reduce.bytes);
      for (auto [w, last, isIdle] : reduce.contributions) {
        sums[w] = end;
        free[w] = std::max(free[w], end);
        for (const Pipeline &pipeline : problem.pipelines)
          if (pipeline.workers[*reduce.stage] == w)
            free[w] += problem.stages[*reduce.stage].update;
      }
    }
    begins = free;
  }
  return static_cast<double>(firsts.back() - firsts[kSteps / 2]) /
         (kSteps - 1 - kSteps / 2);
}

TEST(StepTime, IsThatOfManySteps) {
  forEachFlush(5, [](Case &c) {
    if (c.problem.splits.any())
      return; // relaxedPeriod does not support split backwards
    setSums(c, someTimes(c));
    c.problem.width = 2;
    for (StageCost &cost : c.problem.stages)
      cost.update = 3;
    for (auto [name, policy] : kPolicies) {
      c.problem.policy = policy;
      StepTime time = stepTime(c.problem, c.schedule);
      EXPECT_NEAR(time.total, relaxedPeriod(c), 1e-9 * time.total) << name;
      EXPECT_DOUBLE_EQ(time.actions + time.allReduce + time.update, time.total);
      EXPECT_LE(time.actions,
                static_cast<double>(simulate(c.problem, c.schedule).makespan));
    }
  });
}

/// A worker without a stage changes nothing.
TEST(StepTime, DoesNotDependOnIdleWorkers) {
  forEachFlush(4, [](Case &c) {
    setSums(c, someTimes(c));
    c.problem.width = 2;
    for (StageCost &cost : c.problem.stages)
      cost.update = 3;
    const StepTime time = stepTime(c.problem, c.schedule);
    for (int32_t idle : {0, c.problem.workers}) {
      Case more = c;
      ++more.problem.workers;
      for (Pipeline &pipeline : more.problem.pipelines)
        for (int32_t &worker : pipeline.workers)
          worker += worker >= idle;
      more.schedule.workers.insert(more.schedule.workers.begin() + idle,
                                   std::vector<Action>());
      const StepTime same = stepTime(more.problem, more.schedule);
      EXPECT_EQ(same.total, time.total);
      EXPECT_EQ(same.actions, time.actions);
      EXPECT_EQ(same.allReduce, time.allReduce);
    }
  });
}

/// In GPipe, the worker that starts a step first also ends it last. So the time
/// of a step is the makespan plus the update.
TEST(StepTime, IsMakespanAndUpdateOfGPipe) {
  Case c = makeCase("gpipe", 4, 6, {2, 3, 1, 2});
  for (StageCost &cost : c.problem.stages)
    cost.update = 7;
  StepTime time = stepTime(c.problem, c.schedule);
  auto makespan = static_cast<double>(simulate(c.problem, c.schedule).makespan);
  EXPECT_EQ(time.actions, makespan);
  EXPECT_EQ(time.allReduce, 0);
  EXPECT_EQ(time.update, 7);
}

/// The workers of ZB-V start a step one after another, and end it in the same
/// order. So a step takes as long as the longest span of a worker, from its
/// first to its last action (Qi et al., ICLR'24).
TEST(StepTime, IsTheLongestSpanOfZBV) {
  for (int32_t d : {2, 4, 8}) {
    Case c = makeCase("zb-v", d, 2 * d, {1, 2, 1, 1}, true, Choice({}, 2));
    Timing timing = simulate(c.problem, c.schedule);
    EXPECT_EQ(stepTime(c.problem, c.schedule).total,
              static_cast<double>(std::ranges::max(timing.spans)));
  }
}

/// If gradients are clipped, no worker begins a step before all workers have
/// ended their actions.
TEST(StepTime, IsTheMakespanIfGradientsAreClipped) {
  forEachFlush(5, [](Case &c) {
    c.problem.clips = true;
    EXPECT_TRUE(hasSyncAndUpdate(c.problem));
    const Timing timing = simulate(c.problem, c.schedule);
    EXPECT_EQ(stepTime(c.problem, c.schedule).total,
              static_cast<double>(timing.makespan));
  });
}

/// The all-reduce of the norm is the last one, and all updates follow it.
TEST(SyncAndUpdate, UpdatesAfterTheNorm) {
  forEachFlush(5, [](Case &c) {
    setSums(c, someTimes(c));
    c.problem.width = 2;
    for (StageCost &cost : c.problem.stages)
      cost.update = 3;
    const Timing timing = simulate(c.problem, c.schedule);
    const SyncAndUpdate plain = syncAndUpdateOf(c.problem, c.schedule, timing);
    c.problem.clips = true;
    const SyncAndUpdate clipped =
        syncAndUpdateOf(c.problem, c.schedule, timing);
    ASSERT_EQ(clipped.allReduces.size(), plain.allReduces.size() + 1);
    const SyncAndUpdate::AllReduce &norm = clipped.allReduces.back();
    EXPECT_TRUE(norm.isNorm);
    EXPECT_EQ(norm.end - norm.begin,
              allReduceTime(c.problem, norm.workers, 8, 1));
    for (size_t i = 0; i < plain.allReduces.size(); ++i) {
      EXPECT_EQ(clipped.allReduces[i].end, plain.allReduces[i].end);
      EXPECT_LE(clipped.allReduces[i].end, norm.begin);
    }
    for (size_t w = 0; w < clipped.work.size(); ++w) {
      size_t updates = 0;
      for (const SyncAndUpdate::Work &work : clipped.work[w]) {
        updates += work.isUpdate();
        EXPECT_EQ(work.begin >= norm.end, work.isUpdate());
      }
      size_t replicas = 0;
      for (const Pipeline &pipeline : c.problem.pipelines)
        replicas +=
            std::ranges::count(pipeline.workers, static_cast<int32_t>(w));
      EXPECT_EQ(updates, replicas);
    }
  });
}

/// A worker waits for the all-reduce over the copies and updates its weights:
/// after each backward of PipeDream, and once per step of PipeDream-2BW.
TEST(StepTime, HasUpdatesAndSumsInsideStepsThatOverlap) {
  for (int32_t d = 1; d <= 8; ++d)
    for (int32_t n : {d, 2 * d, 3 * d + 2})
      for (int32_t width : {1, 2}) {
        for (auto [name, updates] :
             {std::pair("pipedream", n), {"pipedream-2bw", 1}}) {
          Case c = makeCase(name, d, n, {2, 3, 1, 2});
          setSums(c, std::vector<int64_t>(d, 5));
          c.problem.width = width;
          for (StageCost &cost : c.problem.stages)
            cost.update = 4;
          SCOPED_TRACE(std::string(name) + " D=" + std::to_string(d) +
                       " N=" + std::to_string(n));
          StepTime time = stepTime(c.problem, c.schedule);
          EXPECT_EQ(time.actions, n * 5);
          EXPECT_EQ(time.allReduce, width == 2 ? updates * 5 : 0);
          EXPECT_EQ(time.update, updates * 4);
        }
      }
}

/// Messages of all-reduces may have times of their own (allReduceMessage). Then
/// the times of the link are not used for them.
TEST(StepTime, TakesSumsByTimesOfTheirOwn) {
  Case c = makeCase("gpipe", 4, 4);
  c.problem.link = {{3, 0, 1}};
  c.problem.width = 2;
  c.problem.allReduceMessage = {7, 0, 1};
  EXPECT_EQ(stepTime(c.problem, c.schedule).allReduce, 2 * 7);
  EXPECT_TRUE(hasSyncAndUpdate(c.problem));
  c.problem.allReduceMessage = {0, 0, 1};
  EXPECT_EQ(stepTime(c.problem, c.schedule).allReduce, 0);
  EXPECT_FALSE(hasSyncAndUpdate(c.problem));
}

/// If all-reduces block their workers, they run after all actions, also with
/// the eager policy.
TEST(StepTime, HidesNoSumThatBlocks) {
  Case c = makeCase("chimera", 4, 4);
  c.problem.width = 2;
  c.problem.allReduceMessage = {7, 0, 1};
  const double lazy = stepTime(c.problem, c.schedule).total;
  c.problem.policy = AllReducePolicy::Eager;
  EXPECT_LT(stepTime(c.problem, c.schedule).total, lazy);
  c.problem.blockingAllReduces = true;
  EXPECT_EQ(stepTime(c.problem, c.schedule).total, lazy);
  // A blocking all-reduce does not overlap with an update either. A worker
  // reduces and updates one of its stages, and then the other one.
  for (StageCost &cost : c.problem.stages)
    cost.update = 5;
  const StepTime time = stepTime(c.problem, c.schedule);
  EXPECT_EQ(time.allReduce, 2 * 4 * 7);
  EXPECT_EQ(time.update, 2 * 5);
  c.problem.blockingAllReduces = false;
  c.problem.policy = AllReducePolicy::Lazy;
  EXPECT_EQ(stepTime(c.problem, c.schedule).update, 5);
}

/// Messages may overlap with actions. But the messages of one channel take time
/// one after another, so a step is not shorter than their sum.
TEST(StepTime, IsAtLeastThatOfMessages) {
  for (const char *name : {"gpipe", "pipedream-2bw"}) {
    SCOPED_TRACE(name);
    Case c = makeCase(name, 2, 8, {1, 1, 1, 1});
    c.problem.link = {{5, 3, 2}};
    c.problem.bytes.assign(2, {0, 0, 0, 0, 20}); // 30 for each message
    EXPECT_EQ(busiestChannel(c.problem), 8 * 30);
    StepTime time = stepTime(c.problem, c.schedule);
    EXPECT_GE(time.total, 8 * 30);
    EXPECT_EQ(time.actions, time.total);
    c.problem.link.alpha = 30;
    c.problem.link.beta = 0;
    EXPECT_EQ(busiestChannel(c.problem), 0);
    EXPECT_LE(stepTime(c.problem, c.schedule).total, time.total);
  }
  Case c = makeCase("gpipe", 2, 8, {1, 1, 1, 1});
  c.problem.link = {{5, 3, 2}};
  c.problem.bytes.assign(2, {0, 0, 0, 0, 20});
  EXPECT_LT(simulate(c.problem, c.schedule).makespan, 8 * 30);
  EXPECT_EQ(stepTime(c.problem, c.schedule).total, 8 * 30);
}

/// The sum of these times needs more than 63 bits.
TEST(StepTime, DoesNotOverflow) {
  Case c = makeCase("chimera", 4, 4);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  setSums(c, std::vector<int64_t>(4, kMost / 2));
  c.problem.width = 8;
  c.problem.policy = AllReducePolicy::Eager;
  StepTime time = stepTime(c.problem, c.schedule);
  EXPECT_GE(time.total, static_cast<double>(kMost / 2));
  EXPECT_GE(time.allReduce, 0);
}

TEST(StepTime, KnowsWhatFollowsActions) {
  Case c = makeCase("chimera", 4, 4);
  EXPECT_FALSE(hasSyncAndUpdate(c.problem));
  c.problem.stages[2].update = 1;
  EXPECT_TRUE(hasSyncAndUpdate(c.problem));
  c.problem.stages[2].update = 0;
  c.problem.link.receive.beta = 1;
  EXPECT_TRUE(hasSyncAndUpdate(c.problem));
  Case one = makeCase("gpipe", 4, 4);
  one.problem.link.alpha = 1;
  EXPECT_FALSE(hasSyncAndUpdate(one.problem));
  one.problem.width = 2;
  EXPECT_TRUE(hasSyncAndUpdate(one.problem));
  one.problem.width = 1;
  one.problem.tiedBytes = 8;
  EXPECT_TRUE(hasSyncAndUpdate(one.problem));
}

} // namespace
} // namespace chimera::schedule
