//===- PropertiesTest.cpp - Properties of every schedule ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests every scheme with every choice of options, for D from 2 to 32 workers
// and N from 1 to 4D+3 micro-batches. Each case is tested as the scheme makes
// it. Every fourth case (up to D=8 every case) is also tested in a variant. A
// random generator with a fixed seed chooses one of six variants, because
// testing all variants of all cases would take minutes.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Formulas.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Bounds.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace chimera::schedule {
namespace {

/// b = (5/4) f. A recompute takes longer than a forward.
constexpr StageCost kCost = {8, 10, 4, 6, 12};

class EverySchedule : public testing::TestWithParam<int32_t> {
protected:
  /// Calls `check` for the cases: for all if `every` is 1, else for a random
  /// case in `every`.
  template <typename Check> void forEachCase(uint32_t every, Check check) {
    int32_t d = GetParam();
    for (const Scheme &scheme : schemes())
      for (const Choice &choice : choices(scheme, d))
        for (int32_t n = 1; n <= 4 * d + 3; ++n) {
          if (random() % every != 0 || !canPlan(scheme, d, n, choice))
            continue;
          check(makeCase(scheme.name, d, n, kCost, false, choice));
          if (HasFatalFailure()) {
            ADD_FAILURE() << nameOf(scheme, d, n, choice);
            return;
          }
        }
  }

  std::mt19937 random = std::mt19937(GetParam());
};

/// Checks that the schedule is valid, runs to its end and is not faster than a
/// bound.
void expectSound(const Case &c, Timing &timing) {
  ASSERT_EQ(check(c.problem), "");
  ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "");
  timing = simulate(c.problem, c.schedule);
  ASSERT_TRUE(timing.complete);
  for (const Bound &bound : bounds(c.problem))
    ASSERT_GE(timing.makespan, bound.time) << bound.name;
}

/// Compares the simulation with the library's formulas for bubbles and peaks.
/// Also checks how many micro-batches each worker of gpipe, 1f1b and the
/// schemes without a flush holds.
void expectStated(const Case &c, const Timing &timing) {
  int32_t d = c.problem.workers, n = c.problem.microBatches();
  std::optional<Sizes> sizes = sizesOf(c.problem, c.choice.options);
  ASSERT_TRUE(sizes);
  if (const BubbleFormula *formula = findBubbleFormula(*c.scheme, *sizes);
      formula && c.problem.updates == Updates::Flush) {
    ASSERT_NEAR(timing.bubbleRatio(), formula->value(*sizes), 1e-12);
  }
  auto [least, most] = std::ranges::minmax(timing.peakActivations);
  if (const PeakFormula *formula = findPeakFormula(*c.scheme, *sizes)) {
    ASSERT_EQ((std::pair<int64_t, int64_t>(least, most)),
              formula->value(*sizes));
  }
  std::string_view name = c.scheme->name;
  if (name == "gems") {
    ASSERT_EQ(most, 1);
  }
  for (int32_t w = 0; w < d; ++w)
    if (name == "gpipe") {
      ASSERT_EQ(timing.peakActivations[w], n);
    } else if (name == "1f1b" || c.problem.updates != Updates::Flush) {
      ASSERT_EQ(timing.peakActivations[w], std::min(n, d - w));
    }
}

/// Checks how many micro-batches Chimera's workers hold, with D workers (even)
/// and 2f pipelines: at most D and, if N >= D, at least D - D/(2f) + 1. For odd
/// D, at most D-1. Doubling holds twice as many, but if the order is made for
/// doubling (two pipelines, D divides N), only at least 3D/2 + 1.
void expectChimera(const Case &c, const Timing &timing) {
  if (std::string_view(c.scheme->name) != "chimera")
    return;
  auto d = static_cast<int32_t>(c.problem.stages.size());
  int32_t n = c.problem.microBatches();
  auto [least, most] = std::ranges::minmax(timing.peakActivations);
  Concatenation how = concatenationOf(c.choice);
  bool doubles =
      how == Concatenation::Doubling || how == Concatenation::FineTunedDoubling;
  int32_t times = doubles ? 2 : 1;
  ASSERT_LE(most, times * (d - d % 2));
  if (d % 2 != 0 || n < times * d)
    return;
  int32_t units = times * (d - d / pipelinesOf(c.choice) + 1);
  bool pairs = doubles && pipelinesOf(c.choice) == 2 && n % d == 0;
  ASSERT_GE(least, pairs ? 3 * d / 2 + 1 : units);
}

/// Makes the memory peaks the caps. Checks that the schedule fits into these
/// caps, and that it is not faster than the bounds for these caps. With caps of
/// one byte less, every worker must exceed its cap.
void expectCapsKept(Case c) {
  c.problem.bytes.assign(c.problem.stages.size(), {0, 0, 1, 1, 0});
  Timing timing = simulate(c.problem, c.schedule);
  ASSERT_TRUE(std::equal(timing.peakBytes.begin(), timing.peakBytes.end(),
                         timing.peakActivations.begin()));
  c.problem.memoryCaps = timing.peakBytes;
  expectSound(c, timing);
  for (int64_t &cap : c.problem.memoryCaps)
    --cap;
  ASSERT_EQ(verify(c.problem, c.schedule).size(), c.problem.memoryCaps.size());
}

/// Checks the case with recomputes. Each worker holds one micro-batch. With
/// fused recomputes the step takes as long as with longer backwards. With early
/// recomputes it takes at most as long.
void expectRecomputed(Case c, Recompute how, bool split, int64_t makespan) {
  c.problem.recompute.assign(c.problem.stages.size(), how);
  c.schedule = insertRecompute(c.problem, c.schedule);
  Timing timing;
  expectSound(c, timing);
  ASSERT_GE(timing.makespan, makespan);
  // Only zb-v runs other actions between the two halves of a backward, so its
  // workers hold more.
  if (std::string_view(c.scheme->name) != "zb-v") {
    ASSERT_EQ(timing.peakActivations,
              std::vector<int32_t>(c.problem.workers, 1));
  }
  Case longer = makeCase(c.scheme->name, c.problem.workers,
                         c.problem.microBatches(), kCost, split, c.choice);
  for (StageCost &cost : longer.problem.stages)
    (c.problem.splits.any() ? cost.inputGradient : cost.backward) +=
        cost.recompute;
  int64_t fused = simulate(longer.problem, longer.schedule).makespan;
  if (how == Recompute::Fused) {
    ASSERT_EQ(timing.makespan, fused);
  } else {
    ASSERT_LE(timing.makespan, fused);
  }
}

TEST_P(EverySchedule, IsSoundAndHoldsWhatIsStated) {
  forEachCase(1, [](Case c) {
    Timing timing;
    expectSound(c, timing);
    expectStated(c, timing);
    expectChimera(c, timing);
    c.problem.link.alpha = 3;
    int64_t delayed = simulate(c.problem, c.schedule).makespan;
    ASSERT_GE(delayed, timing.makespan);
    ASSERT_GE(delayed, bestBound(bounds(c.problem)).time);
  });
}

/// The variants are memory caps, split backwards, recomputes, and recomputes
/// with split backwards. Splitting the backwards must not make the step longer.
TEST_P(EverySchedule, IsSoundInAVariant) {
  forEachCase(GetParam() <= 8 ? 1 : 4, [&](Case c) {
    uint32_t variant = random() % 6;
    if (variant == 0)
      return expectCapsKept(std::move(c));
    int64_t makespan = simulate(c.problem, c.schedule).makespan;
    bool split = variant < 4;
    if (split) {
      scheduleAgain(c, true);
      Timing timing;
      expectSound(c, timing);
      ASSERT_LE(timing.makespan, makespan);
      makespan = timing.makespan;
    }
    if (variant > 1)
      expectRecomputed(std::move(c),
                       variant % 2 ? Recompute::Fused : Recompute::Early, split,
                       makespan);
  });
}

/// Checks that the actions of the critical path go from time 0 to the makespan.
/// Gaps between them must not be longer than a message.
void expectCriticalPath(const Case &c, const Timing &timing) {
  // A forward over two micro-batches sends the longest messages.
  Action most{Kind::Forward, 0, 0, 0, 2};
  std::array<int64_t, 3> longestTimes = {};
  for (const LinkClass *links : c.problem.classes())
    for (size_t i = 0; i < longestTimes.size(); ++i)
      longestTimes[i] =
          std::max(longestTimes[i],
                   c.problem.messageTime(links->link.times()[i], 0, most));
  int64_t longest = longestTimes[0] + longestTimes[1] + longestTimes[2];
  int64_t end = 0;
  int32_t worker = -1;
  for (const ActionRef &ref : timing.criticalPath) {
    int64_t start = timing.starts[ref.worker][ref.index];
    ASSERT_GE(start, end);
    ASSERT_LE(start - end, worker < 0 ? 0 : longest);
    end = start + c.problem.cost(c.schedule.workers[ref.worker][ref.index]);
    worker = ref.worker;
  }
  ASSERT_EQ(end, timing.makespan);
}

/// Messages occupy their sender and their receiver. No bound is above the
/// makespan. If one of the message times becomes longer, no action ends
/// earlier.
TEST_P(EverySchedule, IsSoundWithMessages) {
  forEachCase(GetParam() <= 8 ? 2 : 8, [&](Case c) {
    c.problem.bytes.assign(c.problem.stages.size(), {0, 0, 0, 0, 8});
    scheduleAgain(c, random() % 2 == 0);
    if (random() % 3 == 0) {
      c.problem.recompute.assign(c.problem.stages.size(),
                                 random() % 2 ? Recompute::Fused
                                              : Recompute::Early);
      c.schedule = insertRecompute(c.problem, c.schedule);
    }
    Timing timing;
    expectSound(c, timing);
    ASSERT_EQ(timing.occupied, std::vector<int64_t>(c.problem.workers, 0));
    if (random() % 2 == 0)
      c.problem.node = {1 + static_cast<int32_t>(random() % 5), {}};
    for (int round = 0; round < 4; ++round) {
      std::vector<LinkClass *> classes = c.problem.classes();
      Link &link = classes[random() % classes.size()]->link;
      MessageTime *const times[] = {&link, &link.send, &link.receive};
      MessageTime &time = *times[random() % 3];
      time.alpha += random() % 3;
      time.beta += random() % 3;
      time.betaBytes = 4;
      Timing later;
      expectSound(c, later);
      ASSERT_GE(later.makespan, timing.makespan);
      expectCriticalPath(c, later);
      for (int32_t w = 0; w < c.problem.workers; ++w) {
        ASSERT_EQ(later.busy[w], timing.busy[w]);
        ASSERT_GE(later.spans[w], later.busy[w] + later.occupied[w]);
        ASSERT_GE(later.occupied[w], timing.occupied[w]);
      }
      timing = later;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Properties, EverySchedule, testing::Range(2, 33),
                         testing::PrintToStringParamName());

} // namespace
} // namespace chimera::schedule
