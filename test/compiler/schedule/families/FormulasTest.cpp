//===- FormulasTest.cpp - Closed forms of bubbles and peaks ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Formulas.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/simulate/SteadyState.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace chimera::schedule {
namespace {

/// The bubble ratio of a step or, for a scheme without a flush, of the steady
/// state.
double bubbleRatioOf(const Case &c) {
  return stepsOverlap(c.problem.updates)
             ? steadyState(c.problem, c.schedule).bubbleRatio
             : simulate(c.problem, c.schedule).bubbleRatio();
}

/// Compares every formula with the simulator, for all sizes for which the
/// formula claims to be exact. Tries every scheme with all its choices, N from
/// 1 to 4D+3, and backwards that are split or take 1/2, 1, 5/4, 2 or 3 times as
/// long as forwards. Schemes without a flush are compared in the steady state.
TEST(Formulas, EqualTheSimulatorIfTheirConditionsHold) {
  std::set<const void *> used, known;
  auto compare = [&](const Case &c, const Sizes &sizes) {
    Timing timing = simulate(c.problem, c.schedule);
    double ratio = bubbleRatioOf(c);
    auto speaksOf = [&](const auto &formula) {
      bool speaks = formula.isSplit == sizes.isSplit && formula.holds(sizes);
      if (speaks)
        used.insert(&formula);
      return speaks;
    };
    for (const BubbleFormula &formula : c.scheme->bubbleFormulas)
      if (speaksOf(formula)) {
        EXPECT_NEAR(ratio, formula.value(sizes), 1e-12) << formula.formula;
      }
    auto [least, most] = std::ranges::minmax(timing.peakActivations);
    for (const PeakFormula &formula : c.scheme->peakFormulas)
      if (speaksOf(formula)) {
        EXPECT_EQ((std::pair<int64_t, int64_t>(least, most)),
                  formula.value(sizes))
            << formula.formula;
      }
  };
  for (const Scheme &scheme : schemes()) {
    for (const BubbleFormula &formula : scheme.bubbleFormulas)
      known.insert(&formula);
    for (const PeakFormula &formula : scheme.peakFormulas)
      known.insert(&formula);
    for (int32_t d : {2, 3, 4, 5, 6, 8, 12})
      for (const Choice &choice : choices(scheme, d))
        for (int32_t n = 1; n <= 4 * d + 3; ++n) {
          if (!canPlan(scheme, d, n, choice))
            continue;
          Case c = makeCase(scheme.name, d, n, {}, false, choice);
          for (StageCost cost : {StageCost{4, 2, 1, 1},
                                 {4, 4, 4, 4},
                                 {4, 5, 2, 3},
                                 {4, 8, 5, 3},
                                 {4, 12, 4, 8}}) {
            c.problem.stages.assign(c.problem.stages.size(), cost);
            std::optional<Sizes> sizes = sizesOf(c.problem, c.choice.options);
            // There are no sizes for halving with an odd backward, whose two
            // halves are not equal.
            bool halves = concatenationOf(choice) == Concatenation::Halving;
            ASSERT_EQ(sizes.has_value(), !halves || cost.backward % 2 == 0);
            SCOPED_TRACE(nameOf(scheme, d, n, choice) +
                         " b=" + std::to_string(cost.backward));
            if (sizes)
              compare(c, *sizes);
          }
        }
  }
  EXPECT_EQ(used, known);
}

/// In every formula, the time of a fused recompute is a part of its backward's
/// time.
TEST(Formulas, TakeFusedRecomputesAsPartsOfBackwards) {
  int compared = 0;
  for (const Scheme &scheme : schemes())
    for (int32_t d : {2, 4, 5, 8})
      for (const Choice &choice : choices(scheme, d))
        for (int32_t n : {1, d, d + 1, 2 * d, 4 * d}) {
          if (!canPlan(scheme, d, n, choice))
            continue;
          SCOPED_TRACE(nameOf(scheme, d, n, choice));
          Case c = makeCase(scheme.name, d, n, {4, 8, 1, 1, 4}, false, choice);
          c.problem.recompute.assign(c.problem.stages.size(), Recompute::Fused);
          c.schedule = insertRecompute(c.problem, c.schedule);
          std::optional<Sizes> sizes = sizesOf(c.problem, c.choice.options);
          ASSERT_TRUE(sizes);
          EXPECT_EQ(sizes->backward, sizes->isSplit ? 6 : 12);
          EXPECT_FALSE(findPeakFormula(scheme, *sizes));
          if (const BubbleFormula *formula =
                  findBubbleFormula(scheme, *sizes)) {
            ++compared;
            EXPECT_NEAR(formula->value(*sizes), bubbleRatioOf(c), 1e-12)
                << formula->formula;
          }
        }
  EXPECT_GT(compared, 100);
}

TEST(Formulas, DoNotApplyToOtherProblems) {
  Case c = makeCase("chimera", 4, 4);
  EXPECT_TRUE(sizesOf(c.problem, {}));
  c.problem.link.alpha = 1;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  c.problem.link.alpha = 0;
  c.problem.link.receive.alpha = 1;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  c.problem.link.receive.alpha = 0;
  c.problem.stages[2].backward = 3;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  std::optional<Sizes> split =
      sizesOf(makeCase("chimera", 4, 4, {}, true).problem, chimeraWith(2));
  ASSERT_TRUE(split);
  EXPECT_FALSE(findBubbleFormula(*c.scheme, *split));
  EXPECT_FALSE(findPeakFormula(*c.scheme, *split));
  c = makeCase("chimera", 4, 4);
  c.problem.recompute.assign(4, Recompute::Fused);
  EXPECT_TRUE(sizesOf(c.problem, {}));
  c.problem.recompute[2] = Recompute::None;
  EXPECT_FALSE(sizesOf(c.problem, {}));
  c.problem.recompute.assign(4, Recompute::Early);
  EXPECT_FALSE(sizesOf(c.problem, {}));
}

} // namespace
} // namespace chimera::schedule
