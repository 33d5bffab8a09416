//===- MakePlanTest.cpp - The plan of a scheme ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"

#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/report/Report.h"
#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::schedule {
namespace {

const Scheme &chimera() { return *findScheme("chimera"); }

/// A request in which every option of the scheme is "best" and the stages are
/// unequal.
Request openRequest(const std::string &scheme, int32_t workers,
                    int32_t microBatches, StageCost cost) {
  Request request =
      requestFor(*findScheme(scheme), workers, microBatches, {}, cost);
  for (size_t i = 0; i < request.options.table().size(); ++i)
    request.options.set(i, kBest);
  for (size_t s = 0; s < request.stages.size(); ++s)
    request.stages[s].forward += static_cast<int64_t>(s) % 3;
  return request;
}

struct Cost {
  double time;
  bool fits;
};

/// The time of the plan with these options, and whether it fits, computed
/// without bestOf.
Cost costOf(const Scheme &scheme, Request request, const Options &options) {
  request.options = options;
  Plan plan = *makePlan(scheme, request).plan;
  Problem problem = problemOf(request, plan);
  Schedule order = problem.recompute.empty()
                       ? plan.order
                       : insertRecompute(problem, plan.order);
  Timing timing = simulate(problem, order);
  bool fits = true;
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w)
    fits = fits && timing.peakBytes[w] <= problem.memoryCaps[w];
  return {stepTime(problem, order).total, fits};
}

TEST(Best, TriesEverySettingThatSizesAllow) {
  for (auto [workers, counts] : {std::pair(4, 2), {8, 3}, {6, 2}, {5, 1}}) {
    Request request = openRequest("chimera", workers, 8, {});
    std::vector<Options> all = settingsOf(chimera(), request);
    EXPECT_EQ(std::ssize(all), counts * std::ssize(kConcatenations)) << workers;
    for (const Options &options : all)
      EXPECT_FALSE(options.anyOpen());
    request.options.set("concatenation", "direct");
    EXPECT_EQ(std::ssize(settingsOf(chimera(), request)), counts);
  }
  EXPECT_EQ(
      settingsOf(*findScheme("gpipe"), openRequest("gpipe", 2, 2, {})).size(),
      1u);
}

/// The costs are even numbers, so that half a backward is an integer.
TEST(Best, IsTheFastestChoiceThatFits) {
  for (int32_t d : {2, 4, 8})
    for (int32_t n : {d, 2 * d, 4 * d, 4 * d + 1})
      for (Recompute how : {Recompute::None, Recompute::Early})
        for (int64_t cap : {0, 400, 900, 1}) {
          SCOPED_TRACE("D=" + std::to_string(d) + " N=" + std::to_string(n) +
                       " cap " + std::to_string(cap));
          Request request = openRequest("chimera", d, n, {4, 8, 4, 4, 4, 2});
          if (how != Recompute::None)
            request.recompute.assign(d, how);
          request.bytes.assign(d, {64, 0, 32, 0, 8});
          request.link = {{1, 1, 16}};
          request.width = 2;
          if (cap > 0)
            request.memoryCaps.assign(d, cap);
          std::optional<Candidate> best = bestOf(chimera(), request);
          ASSERT_TRUE(best);
          Cost least = costOf(chimera(), request, best->plan.options);
          EXPECT_DOUBLE_EQ(best->time.total, least.time);
          EXPECT_EQ(best->fits, least.fits);
          for (const Options &options : settingsOf(chimera(), request)) {
            Cost other = costOf(chimera(), request, options);
            EXPECT_LE(other.fits, least.fits);
            if (other.fits == least.fits) {
              EXPECT_LE(least.time, other.time);
            }
          }
          PlanOrError made = makePlan(chimera(), request);
          ASSERT_TRUE(made.plan);
          EXPECT_EQ(made.plan->options, best->plan.options);
          EXPECT_EQ(made.plan->order.workers, best->plan.order.workers);
        }
}

/// If all actions take one tick, half a backward also takes one tick, which
/// must not be refused.
TEST(Best, TakesUnitCosts) {
  Request request = openRequest("chimera", 4, 8, {});
  request.options.set("pipelines", "2");
  EXPECT_TRUE(bestOf(chimera(), request));
  request.options.set("concatenation", "halving");
  EXPECT_TRUE(bestOf(chimera(), request));
}

TEST(Best, GivesTheReasonIfThereIsNoPlan) {
  Request request = openRequest("chimera", 1, 4, {});
  EXPECT_EQ(makePlan(chimera(), request).reason,
            chimera().check(requestFor(chimera(), 1, 4)));
  EXPECT_FALSE(planError(chimera(), request).empty());
}

TEST(Best, IsAValueOfEveryOption) {
  Options options(chimera().options);
  for (size_t i = 0; i < options.table().size(); ++i) {
    EXPECT_EQ(options.set(options.table()[i].name, "best"), "");
    EXPECT_TRUE(options.isOpen(i));
    EXPECT_EQ(options.print(i), "best");
  }
}

/// A report suggests the best settings if and only if they save time and no
/// worker needs more memory with them.
TEST(Best, IsNamedInReports) {
  int32_t named = 0;
  for (auto [d, n] : {std::pair(4, 4), {4, 8}, {4, 16}, {8, 32}, {6, 12}})
    for (Concatenation how : kConcatenations) {
      Case c =
          makeCase("chimera", d, n, {2, 4, 2, 2}, false, chimeraWith(2, how));
      Timing own = simulate(c.problem, c.schedule);
      double time = stepTime(c.problem, c.schedule).total;
      bool isBetter = false;
      Request request = openRequest(chimera(), c.problem);
      for (const Options &options : settingsOf(chimera(), request)) {
        Case other = makeCase("chimera", d, n, {2, 4, 2, 2}, false, options);
        Timing timing = simulate(other.problem, other.schedule);
        isBetter |= std::ranges::max(timing.peakActivations) <=
                        std::ranges::max(own.peakActivations) &&
                    stepTime(other.problem, other.schedule).total < time;
      }
      Report report =
          makeReport("p", c.scheme, c.choice.options, c.problem, c.schedule);
      bool isNamed =
          std::ranges::any_of(report.notes, [](const std::string &n) {
            return n.find(
                       " of this time, and no worker would need more memory") !=
                   std::string::npos;
          });
      EXPECT_EQ(isNamed, isBetter) << nameOf(chimera(), d, n, c.choice);
      named += isNamed;
    }
  EXPECT_GT(named, 5);
  Case other = makeCase("gpipe", 4, 16);
  EXPECT_TRUE(makeReport("p", other.scheme, other.choice.options, other.problem,
                         other.schedule)
                  .notes.empty());
}

} // namespace
} // namespace chimera::schedule
