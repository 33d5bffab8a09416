//===- StepsTest.cpp - Steps that overlap ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/model/Steps.h"
#include "compiler/schedule/MakePlan.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/SteadyState.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace chimera::schedule {
namespace {

constexpr const char *kSchemes[] = {"pipedream", "pipedream-2bw"};

Problem of(const Problem &problem, int32_t steps) {
  Problem longer = problem;
  longer.steps = steps;
  return longer;
}

/// The forward of micro-batch m on stage s reads weight version max(0, m -
/// (D-1-s)).
TEST(Steps, PipeDreamReadsTheNewestVersion) {
  Problem problem = makeCase("pipedream", 4, 6).problem;
  for (int32_t s = 0; s < 4; ++s) {
    for (int32_t m = 0; m < 12; ++m)
      EXPECT_EQ(weightVersion(problem, s, m), std::max(0, m - (3 - s)));
    EXPECT_EQ(weightVersions(problem, s), 4 - s);
  }
}

/// All micro-batches of step k read weight version max(k-1, 0).
TEST(Steps, PipeDream2BWReadsTheVersionOfTheStepBefore) {
  Problem problem = makeCase("pipedream-2bw", 4, 6).problem;
  for (int32_t s = 0; s < 4; ++s) {
    for (int32_t m = 0; m < 24; ++m)
      EXPECT_EQ(weightVersion(problem, s, m), std::max(0, m / 6 - 1));
    EXPECT_EQ(weightVersions(problem, s), 2);
  }
  EXPECT_EQ(weightVersion(makeCase("gpipe", 2, 2).problem, 0, 1), 0);
}

/// The order of the worker of stage s, where d = D-1-s. First come forwards 0
/// to d-1. Then the body has N times F(j+d) and B(j). The rest comes last.
TEST(Steps, PipeDreamHasItsDocumentedBodies) {
  Case c = makeCase("pipedream", 3, 4);
  for (int32_t w = 0; w < 3; ++w) {
    int32_t d = 2 - w;
    auto [begin, end] = c.schedule.bodies[w];
    EXPECT_EQ(begin, d);
    EXPECT_EQ(end, d + 8);
    for (int32_t j = 0; j < 4; ++j) {
      EXPECT_EQ(c.schedule.workers[w][begin + 2 * j],
                (Action{Kind::Forward, 0, w, j + d}));
      EXPECT_EQ(c.schedule.workers[w][begin + 2 * j + 1],
                (Action{Kind::Backward, 0, w, j}));
    }
  }
}

/// The order of all steps in which each worker first runs its early forwards
/// and then alternates one forward and one backward.
Schedule oneByOne(const Problem &problem) {
  Schedule order;
  int32_t all = problem.microBatches() * problem.steps;
  for (int32_t w = 0; w < problem.workers; ++w) {
    std::vector<Action> &row = order.workers.emplace_back();
    int32_t ahead = problem.workers - 1 - w;
    for (int32_t i = 0; i < all + ahead; ++i) {
      if (i < all)
        row.push_back({Kind::Forward, 0, w, i});
      if (i >= ahead)
        row.push_back({Kind::Backward, 0, w, i - ahead});
    }
  }
  return problem.splits.any() ? splitBackwards(order) : order;
}

/// A schedule without a flush is unrolled for several steps. The result is
/// valid and equals oneByOne, for whole and split backwards, and with and
/// without recomputes.
TEST(Steps, UnrollIntoTheSameOrder) {
  for (const char *name : kSchemes)
    for (int32_t d : {1, 2, 3, 4, 8})
      for (int32_t n : {d, d + 1, 2 * d + 1})
        for (bool split : {false, true})
          for (Recompute how :
               {Recompute::None, Recompute::Early, Recompute::Fused}) {
            Case c = makeCase(name, d, n, {}, split);
            c.problem.recompute.assign(d, how);
            c.schedule = insertRecompute(c.problem, c.schedule);
            ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
            for (int32_t steps : {2, 3, 5}) {
              Problem longer = of(c.problem, steps);
              Schedule order = unrollSteps(c.problem, c.schedule, steps);
              EXPECT_EQ(violationText(verify(longer, order)), "");
              Schedule own = oneByOne(longer);
              EXPECT_EQ(order.workers, insertRecompute(longer, own).workers);
            }
          }
}

/// If messages take no time, a step takes the time of a worker's actions: N (f
/// + b).
TEST(Steps, TakeTheTimeOfTheirActions) {
  for (const char *name : kSchemes)
    for (int32_t d = 1; d <= 32; ++d)
      for (int32_t n : {d, d + 1, 2 * d, 3 * d + 2})
        for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {3, 5}, {2, 1}}) {
          Case c = makeCase(name, d, n, {f, b, 1, 1});
          SteadyState steady = steadyState(c.problem, c.schedule);
          EXPECT_EQ(steady.period, n * (f + b));
          EXPECT_EQ(steady.bubbleRatio, 0);
          // The difference of makespans is exact here.
          auto makespan = [&](int32_t steps) {
            return simulate(of(c.problem, steps),
                            unrollSteps(c.problem, c.schedule, steps))
                .makespan;
          };
          EXPECT_EQ(makespan(4) - makespan(3), n * (f + b));
        }
}

/// If a message takes the time c, a micro-batch takes f + b + 2c (D-1)/D on
/// average. For D=4, f=1, b=2 and c=1 this is 4.5.
TEST(Steps, PayForMessages) {
  Case four = makeCase("pipedream", 4, 4, {1, 2, 1, 1});
  four.problem.link.alpha = 1;
  EXPECT_EQ(steadyState(four.problem, four.schedule).period, 4 * 4.5);
  for (const char *name : kSchemes)
    for (int32_t d : {2, 3, 4, 5, 8})
      for (int32_t n : {d, d + 1, 2 * d, 3 * d - 1})
        for (int64_t alpha : {1, 2, 5}) {
          Case c = makeCase(name, d, n, {1, 2, 1, 1});
          c.problem.link.alpha = alpha;
          EXPECT_NEAR(steadyState(c.problem, c.schedule).period,
                      n * (3 + 2.0 * alpha * (d - 1) / d), 1e-9)
              << d << " " << n << " " << alpha;
        }
}

/// A micro-batch goes forth and back over j consecutive workers. While it does,
/// each of these workers runs j micro-batches. So one micro-batch takes at
/// least (sum of f + b over these workers + 2c (j-1)) / j, where c is the time
/// of a message. The time of a step is given by the workers for which this is
/// largest. Fused recomputes make backwards longer.
TEST(Steps, OfUnequalStagesTakeAsLongAsTheSlowestOfThem) {
  std::mt19937 random(1);
  // The times of the stages are very different (from 1) or almost equal (from
  // 100).
  int64_t least = 1;
  auto time = [&] { return static_cast<int64_t>(least + random() % 9); };
  for (int32_t d : {1, 2, 3, 5, 8})
    for (int32_t trial = 0; trial < 60; ++trial) {
      least = trial % 3 == 1 ? 1 : 100;
      Case c = makeCase(kSchemes[trial % 2], d, d + trial % 4);
      int64_t alpha = random() % 4;
      c.problem.link.alpha = alpha;
      for (StageCost &cost : c.problem.stages)
        cost = {time(), time(), 1, 1, time()};
      bool again = trial % 5 == 0;
      if (again) {
        c.problem.recompute.assign(d, Recompute::Fused);
        c.schedule = insertRecompute(c.problem, c.schedule);
      }
      double most = 0;
      int64_t busy = 0;
      for (int32_t w = 0; w < d; ++w) {
        int64_t sum = 0;
        for (int32_t j = 1; w + j <= d; ++j) {
          const StageCost &cost = c.problem.stages[w + j - 1];
          int64_t own =
              cost.forward + cost.backward + (again ? cost.recompute : 0);
          sum += own;
          busy += j == 1 ? own : 0;
          most = std::max(most,
                          static_cast<double>(sum + 2 * alpha * (j - 1)) / j);
        }
      }
      SteadyState steady = steadyState(c.problem, c.schedule);
      int32_t n = c.problem.microBatches();
      EXPECT_NEAR(steady.period, n * most, 1e-9) << d << " " << trial;
      EXPECT_NEAR(steady.bubbleRatio,
                  1 - static_cast<double>(busy) / (d * most), 1e-9);
    }
}

/// The stages take nearly equal times. So the steps become periodic only after
/// several steps, and the period has two steps. On average a step takes 3
/// (104+104+104+103 + 2 · 3) / 2.
TEST(Steps, FindASteadyStateThatComesLate) {
  Case c = makeCase("pipedream", 3, 3);
  c.problem.stages = {{104, 104}, {104, 103}, {100, 102}};
  c.problem.link.alpha = 3;
  EXPECT_EQ(steadyState(c.problem, c.schedule).period, 631.5);
  auto makespan = [&](int32_t steps) {
    return simulate(of(c.problem, steps),
                    unrollSteps(c.problem, c.schedule, steps))
        .makespan;
  };
  EXPECT_EQ(makespan(4) - makespan(3), 634);
}

/// Table 2 of Li and Hoefler. With M bytes of weights per stage, a worker holds
/// M to D M bytes of weights (PipeDream) or 2 M (PipeDream-2BW). Worker r holds
/// the activations of D - r micro-batches.
TEST(Steps, HoldTheVersionsAndActivationsOfTable2) {
  for (const char *name : kSchemes)
    for (int32_t d : {1, 2, 4, 8}) {
      Case c = makeCase(name, d, 2 * d, {1, 2, 1, 1});
      c.problem.bytes.assign(d, {100, 7, 0, 0, 0});
      Timing timing = simulate(c.problem, c.schedule);
      for (int32_t w = 0; w < d; ++w) {
        EXPECT_EQ(timing.peakActivations[w], d - w);
        int32_t versions = c.problem.updates == Updates::EachStep ? 2 : d - w;
        EXPECT_EQ(residentBytes(c.problem)[w], 100 * versions + 7);
      }
    }
}

TEST(Steps, NeedAsManyMicroBatchesAsWorkers) {
  for (const char *name : kSchemes) {
    const Scheme *scheme = findScheme(name);
    EXPECT_EQ(planError(*scheme, 4, 3),
              "expected at least as many micro-batches a step as workers (4), "
              "got 3");
    EXPECT_EQ(planError(*scheme, 4, 4), "");
    EXPECT_NE(noteOf(makeCase(name, 4, 4)), "");
    EXPECT_NE(schemeHelp().find(std::string(name) + ": "), std::string::npos);
  }
}

TEST(Steps, AreChecked) {
  Problem problem = makeCase("pipedream", 2, 2).problem;
  EXPECT_EQ(check(of(problem, 1)),
            "expected at least 2 steps if they overlap, got 1");
  EXPECT_NE(check(of(problem, INT32_MAX)), "");
  EXPECT_EQ(check(of(makeCase("gpipe", 2, 2).problem, 2)),
            "expected one step if a flush ends it, got 2");
  problem.stages.assign(2, {2, 2, 2, 2, 2});
  for (bool pairs : {false, true}) {
    Problem covered = problem;
    if (pairs)
      covered.pipelines[0].forwards = {2};
    else
      covered.pipelines[0].backwardParts = 2;
    EXPECT_EQ(
        check(covered),
        "expected forwards and backwards of one micro-batch if steps overlap");
  }
  problem = makeCase("pipedream", 4, 4).problem;
  problem.pipelines[0].microBatches = {0, 1};
  EXPECT_EQ(check(problem),
            "expected at least 3 micro-batches in a step, because the first "
            "stage runs that many forwards ahead, got 2");
  problem = makeCase("pipedream", 2, 2).problem;
  problem.pipelines[0].workers = {1, 1};
  EXPECT_EQ(
      check(problem),
      "expected a stage on each worker if steps overlap, got none on worker 0");
  problem = makeCase("chimera", 2, 2).problem;
  problem.updates = Updates::EachStep;
  problem.steps = 2;
  EXPECT_EQ(check(problem), "expected one pipeline if steps overlap, got 2");
}

std::string violations(const Case &c, Violation::Constraint constraint) {
  std::string text;
  for (const Violation &violation : verify(c.problem, c.schedule))
    if (violation.constraint == constraint)
      text += violation.message + "\n";
  return text;
}

TEST(VerifySteps, Period) {
  using enum Violation::Constraint;
  Case c = makeCase("pipedream", 2, 2);
  c.schedule.bodies.pop_back();
  EXPECT_EQ(violations(c, Period),
            "expected a body in the order of each worker\n");
  // Bodies that are not inside the worker's order.
  for (Schedule::Body body :
       {Schedule::Body{-1, 4}, {5, 4}, {1, 9}, {1, INT32_MAX}}) {
    c = makeCase("pipedream", 2, 2);
    c.schedule.bodies[0] = body;
    EXPECT_EQ(violations(c, Period),
              "expected a body in the order of each worker\n");
  }
  // The body begins one action too late, so it lacks a forward.
  c = makeCase("pipedream", 2, 2);
  c.schedule.bodies[0].begin += 1;
  EXPECT_EQ(
      violations(c, Period),
      "expected the body to run forward of stage 0, micro-batch 1, either of "
      "the first or of the second step, got neither\n");
  // The body ends one action too late, so it has a forward twice.
  c = makeCase("pipedream", 2, 2);
  c.schedule.bodies[1].end += 1;
  EXPECT_EQ(
      violations(c, Period),
      "expected the body to run forward of stage 1, micro-batch 0, either of "
      "the first or of the second step, got both\n");
  // The order has a forward of the second step before the body.
  c = makeCase("pipedream", 1, 1);
  c.schedule.workers[0] = {{Kind::Forward, 0, 0, 1},
                           {Kind::Forward, 0, 0, 0},
                           {Kind::Backward, 0, 0, 0},
                           {Kind::Backward, 0, 0, 1}};
  c.schedule.bodies = {{1, 3}};
  EXPECT_EQ(violations(c, Period),
            "expected forward of stage 0, micro-batch 0 of the first step in "
            "an earlier section than that of the second step, got it in a "
            "later one\n");
  // The order has all actions of the first step after the body.
  c.schedule.workers[0] = {{Kind::Forward, 0, 0, 1},
                           {Kind::Backward, 0, 0, 1},
                           {Kind::Forward, 0, 0, 0},
                           {Kind::Backward, 0, 0, 0}};
  c.schedule.bodies = {{0, 2}};
  EXPECT_EQ(violations(c, Period),
            "expected forward of stage 0, micro-batch 0 of the first step in "
            "an earlier section than that of the second step, got it in a "
            "later one\n"
            "expected backward of stage 0, micro-batch 0 of the first step "
            "in an earlier section than that of the second step, got it in a "
            "later one\n");
  // The body runs a forward one micro-batch too early.
  c = makeCase("pipedream", 1, 1);
  c.schedule.workers[0] = {{Kind::Forward, 0, 0, 0},
                           {Kind::Backward, 0, 0, 0},
                           {Kind::Forward, 0, 0, 1},
                           {Kind::Backward, 0, 0, 1}};
  c.schedule.bodies = {{1, 3}};
  EXPECT_EQ(violations(c, Period),
            "worker 0: expected exactly 0 forwards of stage 0 before the "
            "body, one for each later stage, got forward of stage 0, "
            "micro-batch 0 before it\n");
  c = makeCase("pipedream", 2, 2);
  c.problem.steps = 3;
  EXPECT_EQ(violations(c, Period), "expected no bodies in an order of 3 steps: "
                                   "only an order of two steps has them\n");
}

/// Worker 1 runs two whole micro-batches before its body. The second one needs
/// F1 of worker 0, which is in worker 0's body. The bodies begin only after all
/// actions before them.
TEST(VerifySteps, PeriodOfSectionsThatNeedLaterOnes) {
  Case c = makeCase("pipedream", 2, 2);
  // Worker 0 runs F0 | F1 B0 F2 B1 | F3 B2 B3, where `|` separates the body
  // from the rest. Worker 1 runs F0 B0 F1 B1 F2 B2 F3 B3, and its body now
  // begins at F2.
  c.schedule.bodies[1] = {4, 8};
  EXPECT_EQ(violations(c, Violation::Constraint::Period),
            "worker 1: forward of stage 1, micro-batch 1 depends on forward "
            "of stage 0, micro-batch 1, which is in a later section\n"
            "worker 1: forward of stage 1, micro-batch 1 of the second step "
            "depends on forward of stage 0, micro-batch 1 of the second "
            "step, which is in a later section\n");
}

TEST(VerifySteps, VersionsOfForwards) {
  // Worker 0 has three forwards before its first backward. Only two are
  // allowed.
  Case c = makeCase("pipedream", 2, 3);
  std::swap(c.schedule.workers[0][2], c.schedule.workers[0][3]);
  EXPECT_EQ(violations(c, Violation::Constraint::Versions),
            "worker 0: forward of stage 0, micro-batch 2 reads the weights "
            "after 1 updates, but only 0 come before it\n");
  // The forward of step 2 comes before the last backward of step 0.
  c = makeCase("pipedream-2bw", 1, 1);
  c.problem.steps = 3;
  c.schedule = {};
  c.schedule.workers = {{{Kind::Forward, 0, 0, 0},
                         {Kind::Forward, 0, 0, 1},
                         {Kind::Forward, 0, 0, 2},
                         {Kind::Backward, 0, 0, 0},
                         {Kind::Backward, 0, 0, 1},
                         {Kind::Backward, 0, 0, 2}}};
  EXPECT_EQ(violations(c, Violation::Constraint::Versions),
            "worker 0: forward of stage 0, micro-batch 2 reads the weights "
            "after 1 updates, but only 0 come before it\n");
}

TEST(VerifySteps, VersionsInTheOrderOfUpdates) {
  Case c = makeCase("pipedream", 2, 2);
  // Worker 0: F0 F1 B0 F2 B1 F3 B2 B3.
  std::swap(c.schedule.workers[0][2], c.schedule.workers[0][4]);
  EXPECT_EQ(violations(c, Violation::Constraint::Versions),
            "worker 0: expected the update of micro-batch 0 on stage 0 next, "
            "got that of 1\n");
}

TEST(VerifySteps, VersionsNoMoreThanKept) {
  Case c = makeCase("pipedream", 2, 3);
  std::vector<Action> &row = c.schedule.workers[0];
  row.clear();
  for (int32_t m = 0; m < 6; ++m)
    row.push_back({Kind::Forward, 0, 0, m});
  for (int32_t m : {1, 2, 0, 3, 4, 5})
    row.push_back({Kind::Backward, 0, 0, m});
  EXPECT_NE(violations(c, Violation::Constraint::Versions)
                .find("worker 0: expected at most 2 versions of stage 0, got "
                      "3 after backward of stage 0, micro-batch 2"),
            std::string::npos)
      << violations(c, Violation::Constraint::Versions);
}

} // namespace
} // namespace chimera::schedule
