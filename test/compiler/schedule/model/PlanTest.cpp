//===- PlanTest.cpp - Requests and plans ----------------------------------===//
//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <random>

namespace chimera::schedule {
namespace {

TEST(Plan, IsNotMadeWhereTheSchemeSaysWhy) {
  const Scheme &scheme = *findScheme("1f1b");
  PlanOrError made = makePlan(scheme, requestFor(scheme, 4, 4, {{}, 2}));
  EXPECT_FALSE(made.plan);
  EXPECT_EQ(made.reason, "expected as many stages as workers (4), got 8");
}

/// A plan can be turned back into a request. Its plan is the same.
TEST(Plan, AnswersItsRequest) {
  for (const Scheme &scheme : schemes())
    for (const Choice &choice : choices(scheme, 4))
      for (bool split : {false, true}) {
        SCOPED_TRACE(nameOf(scheme, 4, 4, choice));
        Case c = makeCase(scheme.name, 4, 4, {2, 4, 3, 1}, split, choice);
        PlanOrError again = makePlan(scheme, requestOf(c));
        ASSERT_TRUE(again.plan);
        EXPECT_EQ(again.plan->pipelines, c.problem.pipelines);
        EXPECT_EQ(again.plan->updates, c.problem.updates);
        EXPECT_EQ(again.plan->splits, c.problem.splits);
        EXPECT_EQ(again.plan->order.workers, c.schedule.workers);
      }
}

TEST(Splits, AreAllOrNoneOrSome) {
  Splits none, all = true, some(2, 3);
  EXPECT_FALSE(none.any());
  EXPECT_TRUE(none.anyWhole());
  EXPECT_TRUE(all.any());
  EXPECT_FALSE(all.anyWhole());
  EXPECT_EQ(some.simplified(), none);
  some.setSplit(1, 2);
  EXPECT_TRUE(some.any());
  EXPECT_TRUE(some.anyWhole());
  EXPECT_EQ(some.simplified(), some);
  EXPECT_TRUE(some.isSplit(1, 2));
  EXPECT_TRUE(some.isSplit(1, 5)); // of the next step
  EXPECT_FALSE(some.isSplit(1, 1));
  EXPECT_FALSE(some.isSplit(0, 2));
  for (int32_t s = 0; s < 2; ++s)
    for (int32_t m = 0; m < 3; ++m)
      some.setSplit(s, m);
  EXPECT_EQ(some.simplified(), all);
}

/// Splits some of the whole backwards of `c`, chosen at random.
Case mixed(Case c, std::mt19937 &random) {
  auto stages = static_cast<int32_t>(c.problem.stages.size());
  c.problem.splits = Splits(stages, c.problem.microBatches());
  for (int32_t s = 0; s < stages; ++s)
    for (int32_t m = 0; m < c.problem.microBatches(); ++m)
      if (random() % 2)
        c.problem.splits.setSplit(s, m);
  c.schedule =
      replaceActions(c.schedule, [&](std::vector<Action> &out, Action action) {
        if (action.kind == Kind::Backward &&
            c.problem.splits.isSplit(action.stage, action.microBatch)) {
          action.kind = Kind::InputGradient;
          out.push_back(action);
          action.kind = Kind::WeightGradient;
        }
        out.push_back(action);
      });
  return c;
}

/// Takes every scheme with whole backwards and splits some of the backwards.
/// All actions of the plan have numbers. The plan is valid and not faster than
/// a bound. Its time is between the time with all backwards whole and the time
/// with all split.
TEST(Splits, MayBeMixed) {
  std::mt19937 random(1);
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 3, 4})
      for (const Choice &choice : choices(scheme, d)) {
        Case whole =
            makeCase(scheme.name, d, 2 * d, {4, 8, 4, 4, 4}, false, choice);
        if (whole.problem.splits.any())
          continue; // zb-v
        SCOPED_TRACE(nameOf(scheme, d, 2 * d, choice));
        Case c = mixed(whole, random);
        ASSERT_EQ(check(c.problem), "");
        EXPECT_EQ(violationText(verify(c.problem, c.schedule)), "");
        int64_t actions = 0;
        for (const std::vector<Action> &row : c.schedule.workers)
          actions += std::ssize(row);
        ActionIds ids(c.problem);
        EXPECT_EQ(ids.required(), actions);
        for (int64_t id = 0; id < ids.count(); ++id)
          if (ids.has(id)) {
            EXPECT_EQ(ids.find(ids.action(id)), id);
            --actions;
          }
        EXPECT_EQ(actions, 0);
        Timing timing = simulate(c.problem, c.schedule);
        EXPECT_TRUE(timing.complete);
        EXPECT_LE(timing.makespan,
                  simulate(whole.problem, whole.schedule).makespan);
        for (const Bound &bound : bounds(c.problem))
          EXPECT_GE(timing.makespan, bound.time) << bound.name;
        // With some backwards split, the order with only whole backwards has
        // wrong actions.
        EXPECT_NE(violationText(verify(c.problem, whole.schedule)), "");
        EXPECT_FALSE(sizesOf(c.problem, c.choice.options));
      }
}

} // namespace
} // namespace chimera::schedule
