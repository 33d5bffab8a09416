//===- DoublingTest.cpp - Doubled forwards and halved backwards -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closed forms of Chimera's doubling and halving, in the notation of
// ClosedFormsTest.cpp: D workers (even), N micro-batches, 2f pipelines, and
// h = D/f. A step has U units: N = 2DU for doubling, and N = DU for halving.
// In formulas of times, f and b are the times of a forward and a backward.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace chimera::schedule {
namespace {

/// The ratio b/f is 1, 3/2, 2, 5/2 or 3. Half of each number is an integer.
constexpr int64_t kDoublingForward = 4;
constexpr int64_t kDoublingBackwards[] = {4, 6, 8, 10, 12};

/// Fine-tuned doubling runs two forwards where doubling runs one forward over
/// two micro-batches.
constexpr auto kTuned = Concatenation::FineTunedDoubling;

class Pairs : public testing::TestWithParam<int32_t> {
protected:
  int32_t d = GetParam();

  /// Calls `check(timing, h, u, b)` for all numbers of pipelines that D allows,
  /// for U up to 3 and for each b of kDoublingBackwards.
  template <typename Check>
  void forEachCase(Concatenation concatenation, Check check) {
    for (const Choice &choice : choices(*findScheme("chimera"), d)) {
      if (concatenationOf(choice) != concatenation)
        continue;
      for (int32_t u = 1; u <= 3; ++u) {
        int32_t n = concatenation == Concatenation::Halving ? d * u : 2 * d * u;
        Case c = makeCase("chimera", d, n, {}, false, choice);
        for (int64_t b : kDoublingBackwards) {
          SCOPED_TRACE(nameOf(*c.scheme, d, n, choice) +
                       " b=" + std::to_string(b));
          c.problem.stages.assign(d, {kDoublingForward, b, 1, 1});
          Timing timing = simulate(c.problem, c.schedule);
          ASSERT_TRUE(timing.complete);
          check(timing, 2 * d / pipelinesOf(choice), u, b);
        }
      }
    }
  }
};

/// Twice the idle time of a worker in a step of `u` units, if each forward
/// covers two micro-batches (a pair). f and b are the times of a forward and a
/// backward of one micro-batch. h is 2D divided by the number of pipelines.
/// With two pipelines the idle time is (D-2) [max(2f, b) + (u-1) |b-2f|]. With
/// more pipelines the order is that of direct concatenation: a pair delays the
/// next one only if backwards take longer than a pair's forward. Then the idle
/// time is (h-2) [max((2f+b)/2, b) + (u-1) max(0, b-2f)].
int64_t twiceIdle(int32_t d, int64_t h, int32_t u, int64_t b) {
  int64_t f = kDoublingForward;
  if (h == d)
    return 2 * (d - 2) * (std::max(2 * f, b) + (u - 1) * std::abs(b - 2 * f));
  return (h - 2) * (std::max(2 * f + b, 2 * b) +
                    2 * (u - 1) * std::max<int64_t>(0, b - 2 * f));
}

/// With doubling (Figure 7c of Chimera's paper), all workers have the idle time
/// that twiceIdle computes.
TEST_P(Pairs, IdleAsTheirLongerHalf) {
  forEachCase(Concatenation::Doubling,
              [&](const Timing &t, int64_t h, int32_t u, int64_t b) {
                for (int64_t idle : t.idle)
                  EXPECT_EQ(2 * idle, twiceIdle(d, h, u, b));
              });
}

/// Halving has half as much idle time as doubling. With two pipelines and
/// backwards of twice a forward, the bubble ratio is (D-2) / (3N + D-2).
TEST_P(Pairs, OfHalvesIdleHalfAsMuch) {
  forEachCase(Concatenation::Halving, [&](const Timing &t, int64_t h, int32_t u,
                                          int64_t b) {
    for (int64_t idle : t.idle)
      EXPECT_EQ(4 * idle, twiceIdle(d, h, u, b));
    if (b == 2 * kDoublingForward && h == d) {
      EXPECT_NEAR(t.bubbleRatio(), (d - 2.0) / (3.0 * d * u + d - 2.0), 1e-12);
    }
  });
}

/// With fine-tuned doubling (Figure 7d of Chimera's paper), every worker is
/// idle for (h-2) [max((f+b)/2, b-f) + (u-1) max(0, b-2f)]. The letters are
/// those of twiceIdle. With two pipelines and b = 2f the bubble ratio is
/// (D-2) / (2N + D-2).
TEST_P(Pairs, FineTunedIdleLess) {
  forEachCase(kTuned, [&](const Timing &t, int64_t h, int32_t u, int64_t b) {
    int64_t f = kDoublingForward;
    int64_t twice = (h - 2) * (std::max(f + b, 2 * (b - f)) +
                               2 * (u - 1) * std::max<int64_t>(0, b - 2 * f));
    for (int64_t idle : t.idle)
      EXPECT_EQ(2 * idle, twice);
    if (b == 2 * f && h == d) {
      EXPECT_NEAR(t.bubbleRatio(), (d - 2.0) / (4.0 * d * u + d - 2.0), 1e-12);
    }
  });
}

/// With doubling, workers hold more micro-batches: from 3D/2 + 1 to 2D with two
/// pipelines. With more pipelines, they hold twice as many as with direct
/// concatenation.
TEST_P(Pairs, HoldTwiceAsMany) {
  for (Concatenation concatenation : {Concatenation::Doubling, kTuned})
    forEachCase(
        concatenation, [&](const Timing &t, int64_t h, int32_t, int64_t) {
          auto [least, most] = std::ranges::minmax(t.peakActivations);
          EXPECT_EQ(least, h == d ? 3 * d / 2 + 1 : 2 * (d - h / 2 + 1));
          EXPECT_EQ(most, 2 * d);
        });
}

/// With halving, the worker that holds the most micro-batches holds D, as with
/// direct concatenation. With more than two pipelines, the worker that holds
/// the fewest also holds as many as with direct concatenation: D - h/2 + 1,
/// where h is 2D divided by the number of pipelines. With two pipelines, the
/// worker that holds the fewest holds half as many as with doubling
/// (HoldTwiceAsMany), rounded up. For D=8 this worker holds 7. With direct
/// concatenation it holds 5.
TEST_P(Pairs, OfHalvesHoldNoMore) {
  forEachCase(Concatenation::Halving,
              [&](const Timing &t, int64_t h, int32_t, int64_t) {
                auto [least, most] = std::ranges::minmax(t.peakActivations);
                EXPECT_EQ(least, h == d ? (3 * d / 2 + 2) / 2 : d - h / 2 + 1);
                EXPECT_EQ(most, d);
              });
}

/// With doubling or halving, the first unit takes 4D-2 slots, of which a worker
/// is idle in D-2. Each further unit takes 3D slots.
TEST_P(Pairs, RepeatEveryThreeDSlots) {
  for (Concatenation concatenation :
       {Concatenation::Doubling, Concatenation::Halving})
    for (int32_t u = 1; u <= 3; ++u) {
      int32_t n = concatenation == Concatenation::Halving ? d * u : 2 * d * u;
      Case c = makeCase("chimera", d, n, {1, 2, 1, 1}, false,
                        chimeraWith(2, concatenation));
      ASSERT_TRUE(c.schedule.hasSlots());
      Timing slots = slotTiming(c.problem, c.schedule);
      EXPECT_EQ(slots.makespan, 3 * d * (u - 1) + 4 * d - 2);
      EXPECT_EQ(slots.idle, std::vector<int64_t>(d, d - 2));
    }
}

/// The critical path of fine-tuned doubling in U units, if a backward takes two
/// to three forwards. It has N + (D-2)/2 - 2(U-1)(D-2) forwards and N + (D-2)/2
/// + (U-1)(D-2) backwards. The times of the test are chosen so that no other
/// numbers have the same sum.
TEST_P(Pairs, FineTunedCriticalPath) {
  for (int32_t u = 1; u <= 3; ++u) {
    int32_t n = 2 * d * u;
    Case c = makeCase("chimera", d, n, {10000, 24999, 1, 1}, false,
                      chimeraWith(2, kTuned));
    int64_t count[2] = {0, 0};
    for (const ActionRef &ref : simulate(c.problem, c.schedule).criticalPath)
      ++count[static_cast<int>(c.schedule.workers[ref.worker][ref.index].kind)];
    EXPECT_EQ(count[0], n + (d - 2) / 2 - 2 * (u - 1) * (d - 2));
    EXPECT_EQ(count[1], n + (d - 2) / 2 + (u - 1) * (d - 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Chimera, Pairs, testing::Range(2, 33, 2),
                         testing::PrintToStringParamName());

/// If a backward takes twice a forward, f: for D=4 and N=8, a step takes 28 f
/// with doubling and 27 f with fine-tuned doubling. For D=8, fine-tuned
/// doubling takes 57 f with N=16 and 105 f with N=32. The times of fine-tuned
/// doubling are the lower bound of this placement: the busiest worker's time
/// plus (D/2-1) (f+b).
TEST(Doubling, TakesTheTimesOfThePaper) {
  auto time = [](int32_t d, int32_t n, Concatenation concatenation) {
    Case c = makeCase("chimera", d, n, {1, 2, 1, 1}, false,
                      chimeraWith(2, concatenation));
    return simulate(c.problem, c.schedule).makespan;
  };
  EXPECT_EQ(time(4, 8, Concatenation::Doubling), 28);
  EXPECT_EQ(time(4, 8, kTuned), 27);
  EXPECT_EQ(time(8, 16, kTuned), 57);
  EXPECT_EQ(time(8, 32, kTuned), 105);
}

/// If D is odd, a unit of doubling has 2 (D-1) micro-batches. Each further unit
/// takes 3D-1 slots.
TEST(Doubling, OfOddStagesRepeats) {
  for (int32_t d = 3; d <= 17; d += 2)
    for (int32_t u = 1; u <= 3; ++u) {
      Case c = makeCase("chimera", d, 2 * (d - 1) * u, {1, 2, 1, 1}, false,
                        chimeraWith(2, Concatenation::Doubling));
      ASSERT_EQ(violationText(verify(c.problem, c.schedule)), "")
          << d << " " << u;
      ASSERT_TRUE(c.schedule.hasSlots());
      for (int32_t w = 0; w < d; ++w)
        for (size_t i = 0; i < c.schedule.workers[w].size(); ++i) {
          Action next = c.schedule.workers[w][i];
          if ((next.microBatch += 2 * (d - 1)) >= c.problem.microBatches())
            continue;
          auto at = std::ranges::find(c.schedule.workers[w], next) -
                    c.schedule.workers[w].begin();
          EXPECT_EQ(c.schedule.slots[w][at],
                    c.schedule.slots[w][i] + 3 * d - 1);
        }
      EXPECT_EQ(slotTiming(c.problem, c.schedule).makespan,
                (3 * d - 1) * (u - 1) + 2 * (d - 2) + 2 * d + 1);
    }
}

} // namespace
} // namespace chimera::schedule
