//===- SharedCoresTest.cpp - Workers that share cores ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/CoreGroups.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/Simulation.h"
#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/simulate/Windows.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <random>

namespace chimera::schedule {
namespace {

using Times = std::vector<std::vector<int64_t>>;

Case onCores(Case c, int32_t cores) {
  c.problem.node = {.devices = c.problem.workers * c.problem.width,
                    .cores = cores};
  return c;
}

/// The example of Clock.h: two workers share one core.
///
///   P0  FF FFFF .. .... BBBBBBBB BBBB
///   P1  .. FFFF FF BBBB BBBBBBBB ....
TEST(SharedCores, RunActionsAtAShareOfTheSpeed) {
  Case c = onCores(makeCase("gpipe", 2, 2, {2, 4, 1, 1}), 1);
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts, (Times{{0, 2, 12, 20}, {2, 6, 8, 12}}));
  EXPECT_EQ(timing.ends, (Times{{2, 6, 20, 24}, {6, 8, 12, 20}}));
  EXPECT_EQ(timing.makespan, 24);
  EXPECT_EQ(timing.busy, (std::vector<int64_t>{18, 18}));
  EXPECT_EQ(timing.idle, (std::vector<int64_t>{6, 6}));
  EXPECT_EQ(
      timing.criticalPath,
      (std::vector<ActionRef>{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {0, 2}, {0, 3}}));
  EXPECT_TRUE(timing.complete);
  // LB6 is the time that the core needs for all work. No bound is above it.
  std::vector<Bound> all = bounds(c.problem);
  EXPECT_STREQ(all.back().name, "LB6");
  EXPECT_EQ(all.back().time, 24);
}

TEST(SharedCores, MessagesOccupyThemToo) {
  Case c = makeCase("gpipe", 2, 1, {2, 2, 1, 1});
  c.problem.width = 2;
  c.problem.link = {{5, 0, 1}, {1, 0, 1}, {3, 0, 1}};
  // Four ranks share one core: two copies of two workers. A worker never runs
  // at the same time as the other worker of its copy. It always runs at the
  // same time as its replica in the other copy.
  c = onCores(c, 1);
  c.problem.node->links = c.problem;
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_EQ(timing.starts, (Times{{0, 38}, {17, 21}}));
  EXPECT_EQ(timing.ends, (Times{{4, 42}, {21, 25}}));
  EXPECT_EQ(timing.occupied, (std::vector<int64_t>{8, 8}));
}

TEST(SharedCores, ThereAreGroupsOfThoseOnANode) {
  auto groups = [](int32_t workers, int32_t width, Node node) {
    Workload work;
    work.workers = workers;
    work.width = width;
    work.node = node;
    std::vector<std::pair<int32_t, double>> all;
    for (const CoreGroup &group : coreGroups(work))
      all.emplace_back(group.workers, group.cores);
    return all;
  };
  using Groups = std::vector<std::pair<int32_t, double>>;
  EXPECT_EQ(groups(4, 1, {.devices = 4}), Groups());
  EXPECT_EQ(groups(4, 1, {.devices = 4, .cores = 2}), (Groups{{4, 2}}));
  EXPECT_EQ(groups(4, 1, {.devices = 2, .cores = 1}), (Groups{{2, 1}, {2, 1}}));
  // A node has two copies of two workers, or four copies of one worker.
  EXPECT_EQ(groups(2, 2, {.devices = 4, .cores = 3}), (Groups{{2, 1.5}}));
  EXPECT_EQ(groups(1, 4, {.devices = 4, .cores = 3}), (Groups{{1, .75}}));
  // A node has three devices. With one copy, the second node has only worker 3.
  // With two copies, the second node also has two workers of the second copy.
  EXPECT_EQ(groups(4, 2, {.devices = 3, .cores = 1}),
            (Groups{{3, 1}, {1, 1 / 3.}}));
  EXPECT_EQ(groups(4, 1, {.devices = 3, .cores = 1}), (Groups{{3, 1}, {1, 1}}));
  Workload work;
  work.workers = 4;
  work.node = {.devices = 3, .cores = 2};
  EXPECT_TRUE(sharesCores(work));
  EXPECT_EQ(slowdowns(work), (std::vector<double>{1.5, 1.5, 1.5, 1}));
  work.node->cores = 3;
  EXPECT_FALSE(sharesCores(work));
}

TEST(SharedCores, DoNoMoreWorkThanTheyCan) {
  Workload work;
  work.workers = 5;
  const std::vector<int64_t> busy = {8, 6, 6, 9, 5};
  EXPECT_EQ(minStepTime(work, busy), 9);
  work.node = {.devices = 3, .cores = 2};
  EXPECT_EQ(minStepTime(work, busy), 10); // (8 + 6 + 6) / 2
  work.node->cores = 1;
  EXPECT_EQ(minStepTime(work, busy), 20);
  // With two copies, worker 3 gets a third of the core on the second node.
  work.width = 2;
  EXPECT_EQ(minStepTime(work, busy), 21); // (9 + 5) / (2 / 3)
}

TEST(SharedCores, AllUpdateAtOnce) {
  Case c = makeCase("gpipe", 2, 1, {2, 2, 1, 1});
  for (StageCost &cost : c.problem.stages)
    cost.update = 5;
  EXPECT_EQ(stepTime(c.problem, c.schedule).total, 8 + 5);
  c = onCores(c, 1);
  EXPECT_EQ(stepTime(c.problem, c.schedule).total, 8 + 10);
}

/// Runs every scheme. If each worker has its own core, all times equal those of
/// simulate(), also with receive windows. With fewer cores no step is shorter,
/// and no bound is above the time of the step.
TEST(SharedCores, NeverShortenASchedule) {
  std::mt19937 random(1);
  auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  int delayed = 0;
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 4, 6})
      for (const Choice &choice : choices(scheme, d)) {
        const int32_t n = d + static_cast<int32_t>(draw(d)) / 2 * 2;
        if (!canPlan(scheme, d, n, choice))
          continue;
        Case c =
            makeCase(scheme.name, d, n, {8, 12, 6, 6, 8}, draw(1) == 1, choice);
        c.problem.bytes.assign(c.problem.stages.size(), {0, 0, 0, 0, 8});
        c.problem.link = {{draw(5), draw(2), 4}, {draw(3)}, {draw(3)}};
        if (c.problem.updates != Updates::Flush) {
          c.problem.width = 2;
          c.problem.allReduceMessage = {3, 0, 1};
          for (StageCost &cost : c.problem.stages)
            cost.update = 2;
        }
        Timing alone = simulate(c.problem, c.schedule);
        Case own = onCores(c, d * c.problem.width);
        own.problem.node->links = own.problem;
        const StepGraph graph(own.problem, own.schedule);
        Timing same = Simulation<SharedCores>(graph).run();
        EXPECT_EQ(same.starts, alone.starts) << nameOf(scheme, d, n, choice);
        EXPECT_EQ(same.ends, alone.ends);
        EXPECT_EQ(same.busy, alone.busy);
        EXPECT_EQ(same.occupied, alone.occupied);
        EXPECT_EQ(same.spans, alone.spans);
        EXPECT_EQ(same.makespan, alone.makespan);
        std::vector<int64_t> begins;
        for (int32_t w = 0; w < d; ++w)
          begins.push_back(draw(30));
        EXPECT_EQ(Simulation<SharedCores>(graph).run(begins).ends,
                  simulate(c.problem, c.schedule, {.begins = begins}).ends);
        Case few = onCores(c, 1 + static_cast<int32_t>(draw(d - 2)));
        few.problem.node->links = few.problem;
        Windows windows(c.problem, c.schedule), shared(few.problem, c.schedule);
        for (int32_t window : {1, 2}) {
          Timing less = windows.simulate(window, true);
          Timing shareless = shared.simulate(window, true);
          EXPECT_TRUE(shareless.complete);
          EXPECT_GE(shareless.makespan, less.makespan);
        }
        Timing slow = simulate(few.problem, few.schedule);
        EXPECT_TRUE(slow.complete);
        EXPECT_GE(slow.makespan, alone.makespan);
        delayed += slow.makespan > alone.makespan;
        for (const Bound &bound : bounds(few.problem))
          if (bound.holdsForSimulator) {
            EXPECT_GE(slow.makespan, bound.time) << bound.name;
          }
        if (c.problem.updates == Updates::Flush) {
          EXPECT_EQ(
              totalsOf(messageOccupationsOf(few.problem, few.schedule, slow)),
              slow.occupied);
        }
        for (int32_t w = 0; w < d; ++w)
          EXPECT_GE(slow.busy[w], alone.busy[w]);
      }
  EXPECT_GT(delayed, 50);
}

/// Simulates consecutive steps with all-reduces and updates. If each worker has
/// its own core, the steps end as if each one were simulated alone. With fewer
/// cores, no step takes less time than the cores need for all of its work.
TEST(SharedCores, RunAllReducesAndUpdatesOfAStep) {
  std::mt19937 random(2);
  auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 4})
      for (const Choice &choice : choices(scheme, d)) {
        if (!canPlan(scheme, d, 2 * d, choice))
          continue;
        Case c =
            makeCase(scheme.name, d, 2 * d, {8, 12, 6, 6, 8}, false, choice);
        if (c.problem.updates != Updates::Flush)
          continue;
        c.problem.policy = kPolicies[draw(2)].policy;
        c.problem.blockingAllReduces = draw(1) == 1;
        c.problem.width = 2;
        c.problem.bytes.assign(c.problem.stages.size(), {16, 0, 0, 0, 8});
        c.problem.link = {{draw(5), draw(2), 4}, {draw(3)}, {draw(3)}};
        c.problem.allReduceMessage = {draw(9), 1, 1};
        for (StageCost &cost : c.problem.stages)
          cost.update = draw(5);
        Case own = onCores(c, 2 * d);
        own.problem.node->links = own.problem;
        const std::vector<GradientReduce> reduces = gradientReduces(
            c.problem, c.schedule, simulate(c.problem, c.schedule));
        SyncAndUpdateOrder order =
            syncAndUpdateOrderOf(own.problem, own.schedule, reduces);
        constexpr int32_t kSteps = 4;
        const StepGraph graph(own.problem, own.schedule);
        Simulation<SharedCores> shared(graph,
                                       {.order = &order, .steps = kSteps});
        shared.run();
        Simulation<OwnCores> alone(graph, {.order = &order, .steps = kSteps});
        alone.run();
        EXPECT_EQ(alone.stepEnds(), shared.stepEnds());
        Simulation<OwnCores> oneByOne(graph, {.order = &order});
        std::vector<int64_t> begins(d, 0);
        for (int32_t step = 0; step < kSteps; ++step) {
          begins =
              oneByOne
                  .runAfter(simulate(c.problem, c.schedule, {.begins = begins}))
                  .ends;
          EXPECT_EQ(shared.stepEnds()[step], begins)
              << nameOf(scheme, d, 2 * d, choice);
        }
        Case few = onCores(c, 2);
        few.problem.node->links = few.problem;
        double work = 0;
        for (const std::vector<Action> &actions : c.schedule.workers)
          for (const Action &action : actions)
            work += static_cast<double>(c.problem.cost(action));
        StepTime time = stepTime(few.problem, few.schedule);
        EXPECT_GE(time.actions, work) << nameOf(scheme, d, 2 * d, choice);
        EXPECT_GE(time.total, time.actions);
        EXPECT_GE(time.total, stepTime(c.problem, c.schedule).total);
      }
}

/// The time of this step needs more than 63 bits. It must not become a short
/// time.
TEST(SharedCores, DoNotOverflow) {
  Case c = onCores(makeCase("gpipe", 2, 1, {2, 2, 1, 1}), 1);
  for (StageCost &cost : c.problem.stages)
    cost.update = int64_t{1} << 60;
  EXPECT_EQ(stepTime(c.problem, c.schedule).total, 0x1p61);
}

/// A schedule with a deadlock stops at the same actions with and without shared
/// cores.
TEST(SharedCores, StopAtTheSameActionsInADeadlock) {
  Case c = makeCase("gpipe", 2, 2);
  std::swap(c.schedule.workers[1][0], c.schedule.workers[1][3]);
  Timing alone = simulate(c.problem, c.schedule);
  c = onCores(c, 1);
  Timing timing = simulate(c.problem, c.schedule);
  EXPECT_FALSE(timing.complete);
  for (size_t w = 0; w < 2; ++w)
    EXPECT_EQ(std::ranges::count(timing.starts[w], -1),
              std::ranges::count(alone.starts[w], -1));
}

} // namespace
} // namespace chimera::schedule
