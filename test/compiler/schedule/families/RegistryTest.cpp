//===- RegistryTest.cpp - Every scheme of the registry --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <set>

namespace chimera::schedule {
namespace {

TEST(Registry, NamesEverySchemeOnce) {
  std::set<std::string> names;
  for (const Scheme &scheme : schemes()) {
    EXPECT_STRNE(scheme.name, "");
    EXPECT_STRNE(scheme.summary, "") << scheme.name;
    EXPECT_STRNE(scheme.needs, "") << scheme.name;
    EXPECT_TRUE(names.insert(scheme.name).second) << scheme.name;
    EXPECT_EQ(findScheme(scheme.name), &scheme);
    EXPECT_NE(schemeNames().find(scheme.name), std::string::npos);
  }
  EXPECT_EQ(schemeNames(),
            "chimera, gpipe, 1f1b, interleaved-1f1b, zb-v, gems, pipedream, "
            "pipedream-2bw");
}

TEST(Registry, KnowsNoOtherName) {
  for (const char *name : {"", "Chimera", "chimera ", "dapple", "gpip"})
    EXPECT_EQ(findScheme(name), nullptr) << name;
}

TEST(Registry, InterleavedNamesTheNearestNumbersOfMicroBatches) {
  const Scheme &scheme = *findScheme("interleaved-1f1b");
  const Choice twoChunks({}, 2);
  for (int32_t d = 1; d <= 8; ++d)
    for (int32_t n = 1; n <= 40; ++n) {
      std::string reason = planError(scheme, d, n, twoChunks);
      if (reason.empty())
        continue;
      int32_t fewer = n, more = n;
      while (!canPlan(scheme, d, fewer, twoChunks))
        --fewer;
      while (!canPlan(scheme, d, more, twoChunks))
        ++more;
      EXPECT_NE(reason.find("use " + std::to_string(fewer) + " or " +
                            std::to_string(more)),
                std::string::npos)
          << d << " workers: " << reason;
    }
}

/// The scheme accepts exactly the numbers of micro-batches that its help text
/// states.
TEST(Registry, InterleavedStatesItsNumbersOfMicroBatches) {
  const Scheme &scheme = *findScheme("interleaved-1f1b");
  EXPECT_STREQ(scheme.needs,
               "any D >= 1, S = vD, N <= D or a multiple of floor(N/D)");
  for (int32_t d = 1; d <= 8; ++d)
    for (int32_t n = 1; n <= 40; ++n)
      EXPECT_EQ(canPlan(scheme, d, n, Choice({}, 2)),
                n <= d || n % (n / d) == 0)
          << d << " workers, " << n << " micro-batches";
}

/// The help text of zb-v says when workers are idle. The simulated schedule
/// must agree.
TEST(Registry, ZBVStatesWhenItsWorkersAreIdle) {
  EXPECT_STREQ(findScheme("zb-v")->summary,
               "split backwards on a V: with equal times and N >= 2D-1, "
               "workers are idle only at the start and the end of a step");
  for (int32_t d = 2; d <= 8; ++d)
    for (int32_t n : {2 * d - 1, 2 * d, 3 * d + 1}) {
      Case c = makeCase("zb-v", d, n, {1, 2, 1, 1}, true, Choice({}, 2));
      Timing timing = simulate(c.problem, c.schedule);
      EXPECT_EQ(timing.internalBubble(), 0) << d << " workers";
      EXPECT_GT(timing.flushBubble(), 0) << d << " workers";
    }
}

/// For all sizes that a scheme accepts, its schedules with whole and with split
/// backwards are valid and run to their end. If the schedule has slots, they
/// have the same order as its actions.
TEST(Registry, EverySchemeIsValidForSizesItAccepts) {
  for (const Scheme &scheme : schemes()) {
    int possible = 0;
    for (int32_t d = 1; d <= 12; ++d)
      for (int32_t n = 1; n <= 12; ++n)
        for (const Choice &choice : choices(scheme, d))
          for (bool split : {false, true}) {
            if (!canPlan(scheme, d, n, choice))
              continue;
            ++possible;
            SCOPED_TRACE(nameOf(scheme, d, n, choice) +
                         (split ? " split" : ""));
            Case c = makeCase(scheme.name, d, n, {4, 8, 6, 2}, split, choice);
            ASSERT_EQ(check(c.problem), "");
            ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
            Timing timing = simulate(c.problem, c.schedule);
            EXPECT_TRUE(timing.complete);
            // Each worker runs all of its actions. They take 4 + 8 for each
            // micro-batch.
            int32_t all = n * c.problem.steps * choice.chunks;
            for (size_t w = 0; w < timing.idle.size(); ++w)
              EXPECT_EQ(timing.makespan - timing.idle[w], 12 * all);
          }
    EXPECT_GT(possible, 0) << scheme.name;
  }
}

TEST(Registry, SplitsEveryBackwardIntoNeighbours) {
  for (const Scheme &scheme : schemes()) {
    if (!canPlan(scheme, 4, 4))
      continue; // zb-v, whose backwards are always split
    Case whole = makeCase(scheme.name, 4, 4);
    Case split = makeCase(scheme.name, 4, 4, {}, true);
    EXPECT_FALSE(split.schedule.hasSlots());
    for (size_t w = 0; w < 4; ++w) {
      const std::vector<Action> &row = split.schedule.workers[w];
      size_t next = 0;
      for (Action action : whole.schedule.workers[w]) {
        ASSERT_LT(next, row.size());
        if (action.kind == Kind::Backward) {
          action.kind = Kind::InputGradient;
          EXPECT_EQ(row[next++], action);
          action.kind = Kind::WeightGradient;
        }
        ASSERT_LT(next, row.size());
        EXPECT_EQ(row[next++], action);
      }
      EXPECT_EQ(next, row.size());
    }
  }
}

/// Each action has a number, and the number can be converted back to the
/// action. An action that is not in the problem has no number.
TEST(ActionIds, NumbersEveryActionOnce) {
  for (bool split : {false, true}) {
    Case c = makeCase("chimera", 4, 4, {}, split);
    ActionIds ids(c.problem);
    EXPECT_EQ(ids.count(), 4 * 4 * (split ? 3 : 2));
    for (int64_t id = 0; id < ids.count(); ++id)
      EXPECT_EQ(ids.find(ids.action(id)), id);
    EXPECT_EQ(ids.find(Kind::Backward, 0, 0).has_value(), !split);
    EXPECT_EQ(ids.find(Kind::InputGradient, 0, 0).has_value(), split);
    EXPECT_EQ(ids.find(Kind::WeightGradient, 0, 0).has_value(), split);
    for (auto [s, m] : {std::pair{-1, 0}, {4, 0}, {0, -1}, {0, 4}})
      EXPECT_EQ(ids.find(Kind::Forward, s, m), std::nullopt);
  }
}

} // namespace
} // namespace chimera::schedule
