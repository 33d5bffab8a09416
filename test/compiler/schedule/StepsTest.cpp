//===- StepsTest.cpp - Steps that overlap ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Steps.h"

#include "compiler/schedule/Memory.h"
#include "compiler/schedule/Recompute.h"
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

/// F(m) of stage s reads version max(0, m - (D-1-s)).
TEST(Steps, PipeDreamReadsTheNewestVersion) {
  Problem problem = makeCase("pipedream", 4, 6).problem;
  for (int32_t s = 0; s < 4; ++s) {
    for (int32_t m = 0; m < 12; ++m)
      EXPECT_EQ(weightVersion(problem, s, m), std::max(0, m - (3 - s)));
    EXPECT_EQ(weightVersions(problem, s), 4 - s);
  }
}

/// All of step k reads version max(k-1, 0).
TEST(Steps, PipeDream2BWReadsTheVersionOfTheStepBefore) {
  Problem problem = makeCase("pipedream-2bw", 4, 6).problem;
  for (int32_t s = 0; s < 4; ++s) {
    for (int32_t m = 0; m < 24; ++m)
      EXPECT_EQ(weightVersion(problem, s, m), std::max(0, m / 6 - 1));
    EXPECT_EQ(weightVersions(problem, s), 2);
  }
  EXPECT_EQ(weightVersion(makeCase("gpipe", 2, 2).problem, 0, 1), 0);
}

/// The order of a worker with d = D-1-s: forwards 0 to d-1, then N times F(j+d)
/// and B(j), then the rest.
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

/// An order of all steps in which one forward and one backward alternate.
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
  // Unrolled bodies are valid and equal the scheme's own order, for any number
  // of steps, for whole and split backwards, and with and without recomputes.
  return problem.splits.any() ? splitBackwards(order) : order;
}

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
            ASSERT_EQ(messages(verify(c.problem, c.schedule)), "");
            for (int32_t steps : {2, 3, 5}) {
              Problem longer = of(c.problem, steps);
              Schedule order = unrollSteps(c.problem, c.schedule, steps);
              EXPECT_EQ(messages(verify(longer, order)), "");
              Schedule own = oneByOne(longer);
              EXPECT_EQ(order.workers, insertRecompute(longer, own).workers);
            }
          }
}

/// If messages take no time, a step takes N (f + b).
TEST(Steps, TakeTheTimeOfTheirActions) {
  for (const char *name : kSchemes)
    for (int32_t d = 1; d <= 32; ++d)
      for (int32_t n : {d, d + 1, 2 * d, 3 * d + 2})
        for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {3, 5}, {2, 1}}) {
          Case c = makeCase(name, d, n, {f, b, 1, 1});
          SteadyState steady = steadyState(c.problem, c.schedule);
          EXPECT_EQ(steady.period, n * (f + b));
          EXPECT_EQ(steady.bubbleRatio, 0);
          // Exact from one step to the next.
          auto makespan = [&](int32_t steps) {
            return simulate(of(c.problem, steps),
                            unrollSteps(c.problem, c.schedule, steps))
                .makespan;
          };
          EXPECT_EQ(makespan(4) - makespan(3), n * (f + b));
        }
}

/// If a message takes time c, a micro-batch takes f + b + 2c (D-1)/D: 4.5 at
/// D=4, f=1, b=2, c=1.
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

/// A micro-batch goes back and forth over j consecutive workers, which takes j
/// rounds. A round therefore takes (sum of f + b + 2c (j-1)) / j, for the j
/// workers with the largest value. Fused recomputes make backwards longer.
TEST(Steps, OfUnequalStagesTakeAsLongAsTheSlowestOfThem) {
  std::mt19937 random(1);
  // The times of the stages: very different, or almost equal.
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

/// The stages take nearly equal times. The steps become periodic only after
/// several steps, with a period of two steps. A step takes 3 (104+104+104+103 +
/// 2 · 3) / 2 on average.
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

/// Table 2 of Li and Hoefler: a worker holds weights of M to D M, or of 2 M. It
/// holds the activations of 1 to D micro-batches, D - r on worker r.
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
  // Bodies outside the orders.
  for (Schedule::Body body :
       {Schedule::Body{-1, 4}, {5, 4}, {1, 9}, {1, INT32_MAX}}) {
    c = makeCase("pipedream", 2, 2);
    c.schedule.bodies[0] = body;
    EXPECT_EQ(violations(c, Period),
              "expected a body in the order of each worker\n");
  }
  // One forward too few.
  c = makeCase("pipedream", 2, 2);
  c.schedule.bodies[0].begin += 1;
  EXPECT_EQ(
      violations(c, Period),
      "expected the body to run forward of stage 0, micro-batch 1, either of "
      "the first or of the second step, got neither\n");
  // One too many.
  c = makeCase("pipedream", 2, 2);
  c.schedule.bodies[1].end += 1;
  EXPECT_EQ(
      violations(c, Period),
      "expected the body to run forward of stage 1, micro-batch 0, either of "
      "the first or of the second step, got both\n");
  // A forward of the second step is before the body.
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
  // All of the first step is after the body.
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
  // The stage runs one more forward ahead than it may.
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

/// Worker 1 runs all of a step before its body. F1 would have to come from a
/// body that has not begun.
TEST(VerifySteps, PeriodOfSectionsThatNeedLaterOnes) {
  Case c = makeCase("pipedream", 2, 2);
  // Worker 0: F0 | F1 B0 F2 B1 | F3 B2 B3; worker 1: F0 B0 F1 B1 F2 B2 F3 B3,
  // whose body now begins at F2.
  c.schedule.bodies[1] = {4, 8};
  EXPECT_EQ(violations(c, Violation::Constraint::Period),
            "worker 1: forward of stage 1, micro-batch 1 depends on forward "
            "of stage 0, micro-batch 1, which is in a later section\n"
            "worker 1: forward of stage 1, micro-batch 1 of the second step "
            "depends on forward of stage 0, micro-batch 1 of the second "
            "step, which is in a later section\n");
}

TEST(VerifySteps, VersionsOfForwards) {
  // Worker 0 has three forwards before the first backward, one too many.
  Case c = makeCase("pipedream", 2, 3);
  std::swap(c.schedule.workers[0][2], c.schedule.workers[0][3]);
  EXPECT_EQ(violations(c, Violation::Constraint::Versions),
            "worker 0: forward of stage 0, micro-batch 2 reads the weights "
            "after 1 updates, but only 0 come before it\n");
  // A step's forward is before the last gradient of the step before the
  // previous one.
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
