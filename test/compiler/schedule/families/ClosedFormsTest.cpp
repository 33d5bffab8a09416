//===- ClosedFormsTest.cpp - Closed forms of makespans --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Notation: D workers, N micro-batches, 2f pipelines. In formulas of times, f
// and b are the times of a forward and a backward, with b >= f. Messages take
// no time, and all stages are equal.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Memory.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace chimera::schedule {
namespace {

/// The ratio b/f is 1, 5/4, 2 or 3.
constexpr int64_t kForward = 4;
constexpr int64_t kBackwards[] = {4, 5, 8, 12};

/// Calls `check(timing, b)` for each b of kBackwards.
template <typename Check>
void atEachRatio(const std::string &scheme, int32_t d, int32_t n,
                 const Choice &choice, Check check) {
  Case c = makeCase(scheme, d, n, {}, false, choice);
  for (int64_t b : kBackwards) {
    SCOPED_TRACE(nameOf(*c.scheme, d, n, choice) + " b=" + std::to_string(b));
    c.problem.stages.assign(d, {kForward, b, 1, 1});
    Timing timing = simulate(c.problem, c.schedule);
    ASSERT_TRUE(timing.complete);
    check(timing, b);
  }
}

/// Each test runs once for each D.
class ClosedForms : public testing::TestWithParam<int32_t> {};
class EvenD : public ClosedForms {};
class OddD : public ClosedForms {};

/// The time T of a step with direct concatenation. D, N, 2f pipelines and the
/// times f and b are defined at the top of the file. N = kD + rest, with 1 <=
/// rest <= D. The rest gives each pipeline at most n micro-batches. h is 2D
/// divided by the number of pipelines.
///
///   T = k [D (f+b) + (h-2) (b-f)] + D (f+b) + 2 (n-1) b
///       - [k >= 1] min(f, (h/2 - n) (b-f))
///
/// If each action takes one slot, the step has 2Dk + 2(n-1) + 2D slots.
TEST_P(EvenD, Direct) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d)) {
    if (concatenationOf(choice) != Concatenation::Direct)
      continue;
    for (int32_t n = 1; n <= 4 * d + 3; ++n) {
      int64_t k = (n - 1) / d, rest = n - k * d;
      int64_t most = (rest + pipelinesOf(choice) - 1) / pipelinesOf(choice);
      int64_t h = 2 * d / pipelinesOf(choice), f = kForward;
      atEachRatio("chimera", d, n, choice, [&](const Timing &t, int64_t b) {
        int64_t time = k * (d * (f + b) + (h - 2) * (b - f)) + d * (f + b) +
                       2 * (most - 1) * b;
        if (k >= 1)
          time -= std::min(f, (h / 2 - most) * (b - f));
        EXPECT_EQ(t.makespan, time);
      });
      Case c = makeCase("chimera", d, n, {}, false, choice);
      ASSERT_TRUE(c.schedule.hasSlots());
      EXPECT_EQ(slotTiming(c.problem, c.schedule).makespan,
                2 * d * k + 2 * (most - 1) + 2 * d);
    }
  }
}

/// Compared with direct concatenation, eager concatenation saves min(f, b-f)
/// between two units (f and b are the times of a forward and a backward). It
/// saves this time if some pipeline has as many micro-batches of the later unit
/// as of a whole unit. The exception is D pipelines: then every worker has
/// whole models, which is data parallelism.
TEST_P(EvenD, Eager) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d)) {
    int64_t h = 2 * d / pipelinesOf(choice);
    if (concatenationOf(choice) != Concatenation::Eager || h == 2)
      continue;
    for (int32_t n = 1; n <= 4 * d + 3; ++n) {
      int64_t k = (n - 1) / d, rest = n - k * d;
      int64_t most = (rest + pipelinesOf(choice) - 1) / pipelinesOf(choice);
      int64_t junctions = k > 0 ? k - (most < h / 2) : 0;
      std::map<int64_t, int64_t> direct;
      atEachRatio("chimera", d, n, chimeraWith(pipelinesOf(choice)),
                  [&](const Timing &t, int64_t b) { direct[b] = t.makespan; });
      atEachRatio("chimera", d, n, choice, [&](const Timing &t, int64_t b) {
        EXPECT_EQ(t.makespan,
                  direct[b] - junctions * std::min(kForward, b - kForward));
      });
    }
  }
}

/// With direct concatenation, two pipelines, D workers and KD micro-batches,
/// every worker is idle for (D-2) (K (b-f) + f), where f and b are the times of
/// a forward and a backward.
TEST_P(EvenD, DirectIdlesAtEveryJunction) {
  int32_t d = GetParam();
  for (int32_t k = 1; k <= 4; ++k)
    atEachRatio("chimera", d, k * d, {}, [&](const Timing &t, int64_t b) {
      EXPECT_EQ(t.idle, std::vector<int64_t>(
                            d, (d - 2) * (k * (b - kForward) + kForward)));
    });
}

/// If N is a multiple of D, workers hold from D - D/(2f) + 1 to D
/// micro-batches, where 2f is the number of pipelines.
TEST_P(EvenD, HoldsUpToAUnit) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d))
    if (isOneByOne(concatenationOf(choice)))
      for (int32_t k = 1; k <= 3; ++k)
        atEachRatio("chimera", d, k * d, choice, [&](const Timing &t, int64_t) {
          auto [least, most] = std::ranges::minmax(t.peakActivations);
          EXPECT_EQ(least, d - d / pipelinesOf(choice) + 1);
          EXPECT_EQ(most, d);
        });
}

/// With 2f pipelines, a unit has D/f - 2 idle slots. If a backward takes twice
/// a forward, a worker is idle for the time of twice as many forwards. In the
/// notation of the paper's Table 3, this is a bubble of (D - 2f) / (3fN/2 + D -
/// 2f).
TEST_P(EvenD, MorePipelinesIdleLess) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d)) {
    if (concatenationOf(choice) != Concatenation::Direct)
      continue;
    Case c = makeCase("chimera", d, d, {1, 2, 1, 1}, false, choice);
    int64_t h = 2 * d / pipelinesOf(choice);
    EXPECT_EQ(slotTiming(c.problem, c.schedule).idle,
              std::vector<int64_t>(d, h - 2));
    Timing timing = simulate(c.problem, c.schedule);
    EXPECT_EQ(timing.idle, std::vector<int64_t>(d, 2 * (h - 2)));
    double p = pipelinesOf(choice);
    EXPECT_NEAR(timing.bubbleRatio(), (d - p) / (0.75 * p * d + d - p), 1e-12);
  }
}

/// The bubble ratio of the paper's Table 3 is (D - 2f) / (2fN + D - 2f), where
/// 2f is the number of pipelines. It is exact if a backward takes as long as a
/// forward and D divides N.
TEST_P(EvenD, StatedBubbleRatioOfMorePipelines) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d))
    if (concatenationOf(choice) == Concatenation::Direct)
      for (int32_t k = 1; k <= 3; ++k) {
        Case c = makeCase("chimera", d, k * d, {}, false, choice);
        double p = pipelinesOf(choice);
        EXPECT_NEAR(simulate(c.problem, c.schedule).bubbleRatio(),
                    (d - p) / (p * k * d + d - p), 1e-12);
      }
}

/// Each worker has a stage of each of the 2f pipelines, with its weights and
/// optimizer state.
TEST_P(EvenD, HoldsAStageOfEveryPipeline) {
  int32_t d = GetParam();
  for (const Choice &choice : choices(*findScheme("chimera"), d)) {
    Case c = makeCase("chimera", d, 2 * d, {1, 2, 1, 1}, false, choice);
    c.problem.bytes.assign(d, {100, 7, 0, 0, 0});
    for (int32_t w = 0; w < d; ++w)
      EXPECT_EQ(residentBytes(c.problem)[w], pipelinesOf(choice) * 107);
  }
}

/// Checks the numbers of forwards and backwards on the critical path against
/// Chimera's performance model. The caller chooses times for which no other
/// numbers have the same sum.
void expectOnCriticalPath(const Case &c, int64_t forwards, int64_t backwards) {
  int64_t count[2] = {0, 0};
  for (const ActionRef &ref : simulate(c.problem, c.schedule).criticalPath)
    ++count[static_cast<int>(c.schedule.workers[ref.worker][ref.index].kind)];
  EXPECT_EQ(count[0], forwards);
  EXPECT_EQ(count[1], backwards);
}

/// With direct concatenation, D workers and N = KD micro-batches, the critical
/// path has N - (K-1)(D-2) forwards and N + K(D-2) backwards.
TEST_P(EvenD, DirectCriticalPath) {
  int32_t d = GetParam();
  for (int32_t k = 1; k <= 4; ++k) {
    int32_t n = k * d;
    expectOnCriticalPath(makeCase("chimera", d, n, {10000, 19999, 1, 1}),
                         n - (k - 1) * (d - 2), n + k * (d - 2));
  }
}

/// The bubble ratios of the paper's Table 2 and Section 2 are exact in two
/// cases: if a backward takes as long as a forward, for any N that is a
/// multiple of D; and if a backward takes twice as long, for N = D.
TEST_P(EvenD, StatedBubbleRatios) {
  int32_t d = GetParam();
  for (int32_t k = 1; k <= 4; ++k) {
    Case c = makeCase("chimera", d, k * d);
    EXPECT_NEAR(simulate(c.problem, c.schedule).bubbleRatio(),
                (d - 2.0) / (2.0 * k * d + d - 2.0), 1e-12);
  }
  Case c = makeCase("chimera", d, d, {1, 2, 1, 1});
  EXPECT_NEAR(simulate(c.problem, c.schedule).bubbleRatio(),
              (d - 2.0) / (1.5 * d + d - 2.0), 1e-12);
}

/// The first and the last worker hold D/2 + 1 micro-batches. From both ends
/// towards the middle, each worker holds one more.
TEST_P(EvenD, EndWorkersHoldLeast) {
  int32_t d = GetParam();
  std::vector<int32_t> peaks;
  for (int32_t w = 0; w < d; ++w)
    peaks.push_back(d / 2 + 1 + std::min(w, d - 1 - w));
  Case c = makeCase("chimera", d, d, {1, 2, 1, 1});
  EXPECT_EQ(simulate(c.problem, c.schedule).peakActivations, peaks);
}

/// With D pipelines, every worker has all stages. Then there is no bubble if D
/// divides N.
TEST_P(EvenD, WholeModelsIdleNever) {
  int32_t d = GetParam();
  for (int32_t k = 1; k <= 3; ++k)
    atEachRatio(
        "chimera", d, k * d, chimeraWith(d),
        [&](const Timing &t, int64_t) { EXPECT_EQ(t.flushBubble(), 0); });
}

INSTANTIATE_TEST_SUITE_P(Chimera, EvenD, testing::Range(2, 33, 2),
                         testing::PrintToStringParamName());

/// If N <= D-1, a step takes D (f+b) + (N-1) b, or N-1 + 2D slots. f and b are
/// the times of a forward and a backward.
TEST_P(OddD, OneUnit) {
  int32_t d = GetParam();
  for (int32_t n = 1; n <= d - 1; ++n) {
    atEachRatio("chimera", d, n, {}, [&](const Timing &t, int64_t b) {
      EXPECT_EQ(t.makespan, d * (kForward + b) + (n - 1) * b);
    });
    Case c = makeCase("chimera", d, n);
    EXPECT_EQ(slotTiming(c.problem, c.schedule).makespan, n - 1 + 2 * d);
  }
}

/// If N = K (D-1), a step takes D f + 2 (K-1) f + K (2D-2) b, where f and b are
/// the times of a forward and a backward. Each unit has 2D slots. In the last
/// unit, a worker is idle in D of its slots.
TEST_P(OddD, WholeUnits) {
  int32_t d = GetParam();
  for (int32_t k = 1; k <= 4; ++k) {
    int32_t n = k * (d - 1);
    atEachRatio("chimera", d, n, {}, [&](const Timing &t, int64_t b) {
      EXPECT_EQ(t.makespan, (d + 2 * (k - 1)) * kForward + k * (2 * d - 2) * b);
    });
    Case c = makeCase("chimera", d, n);
    EXPECT_EQ(slotTiming(c.problem, c.schedule).makespan,
              2 * d * (k - 1) + 3 * d - 2);
    if (k == 1) {
      EXPECT_EQ(slotTiming(c.problem, c.schedule).idle,
                std::vector<int64_t>(d, d));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chimera, OddD, testing::Range(3, 33, 2),
                         testing::PrintToStringParamName());

/// A step of GEMS takes D (f+b) + (N-1) (D max(f,b) + min(f,b)), where f and b
/// are the times of a forward and a backward. Each worker holds one micro-batch
/// at a time.
TEST_P(ClosedForms, Gems) {
  int32_t d = GetParam();
  for (int32_t n : {1, 2, 3, 4, 7, 8, 20, 33}) {
    atEachRatio("gems", d, n, {}, [&](const Timing &t, int64_t b) {
      EXPECT_EQ(t.makespan, d * (kForward + b) + (n - 1) * (d * b + kForward));
      EXPECT_EQ(t.peakActivations, std::vector<int32_t>(d, 1));
    });
    Case slow = makeCase("gems", d, n, {7, 3, 1, 1});
    EXPECT_EQ(simulate(slow.problem, slow.schedule).makespan,
              d * 10 + (n - 1) * (d * 7 + 3));
  }
}

INSTANTIATE_TEST_SUITE_P(Gems, ClosedForms, testing::Values(2, 3, 4, 7, 8, 16),
                         testing::PrintToStringParamName());

/// Table 2 of Chimera's paper states a bubble of (D-1) / (D + 1/2) for GEMS.
/// This is nearly exact if a backward takes twice a forward.
TEST(Gems, IsIdleNearlyAsStated) {
  for (auto [d, n, simulated, stated] :
       {std::tuple{4, 8, 0.680, 0.667}, {8, 32, 0.826, 0.824}}) {
    Case c = makeCase("gems", d, n, {1, 2, 1, 1});
    EXPECT_NEAR(simulate(c.problem, c.schedule).bubbleRatio(), simulated,
                0.0005);
    EXPECT_NEAR((d - 1) / (d + 0.5), stated, 0.0005);
  }
}

/// If a backward is split into an input gradient of time i and a weight
/// gradient of time w, each stage sends its input gradient at once. The weight
/// gradient delays no other worker. So a worker is idle for only (D-1) (f+i).
TEST(GPipe, IdlesLessWithSplitBackwards) {
  for (int32_t d : {1, 2, 3, 4, 7, 16, 32})
    for (int32_t n : {1, 2, 3, 8, 33})
      for (auto [f, i, w] : {std::tuple{1, 1, 1}, {2, 3, 1}, {4, 2, 5}}) {
        Case c = makeCase("gpipe", d, n, {f, i + w, i, w}, true);
        EXPECT_EQ(simulate(c.problem, c.schedule).makespan,
                  n * (f + i + w) + (d - 1) * (f + i));
      }
}

/// If a message takes the time c, a step takes (N+D-1) (f+b) + 2 (D-1) c, where
/// f and b are the times of a forward and a backward.
TEST(GPipe, PaysForMessagesInRampAndDrainOnly) {
  for (int32_t d : {1, 2, 3, 4, 7, 16, 32})
    for (int32_t n : {1, 2, 3, 8, 33})
      for (int64_t alpha : {1, 2, 5}) {
        Case c = makeCase("gpipe", d, n, {2, 3, 1, 1});
        c.problem.link.alpha = alpha;
        EXPECT_EQ(simulate(c.problem, c.schedule).makespan,
                  (n + d - 1) * 5 + 2 * (d - 1) * alpha);
      }
}

/// Idle time in percent for KD micro-batches, if a backward takes twice a
/// forward. The columns are GPipe and 1F1B, the paper's ideal, direct
/// concatenation, and fine-tuned doubling, which needs an even K.
TEST(ChimeraSizes, HaveTheIdleSharesOfTheReference) {
  struct Row {
    int32_t d, k;
    double linear, ideal, direct, doubling;
  };
  for (auto [d, k, linear, ideal, direct, doubling] :
       {Row{4, 1, 42.9, 20.0, 25.0, -1},
        {4, 2, 27.3, 11.1, 20.0, 11.1},
        {4, 4, 15.8, 5.9, 17.2, 5.9},
        {4, 8, 8.6, 3.0, 15.8, 3.0},
        {8, 1, 46.7, 27.3, 33.3, -1},
        {8, 2, 30.4, 15.8, 27.3, 15.8},
        {8, 4, 17.9, 8.6, 23.8, 8.6},
        {16, 1, 48.4, 30.4, 36.8, -1},
        {16, 2, 31.9, 17.9, 30.4, 17.9},
        {16, 4, 19.0, 9.9, 26.7, 9.9},
        {32, 1, 49.2, 31.9, 38.5, -1}}) {
    SCOPED_TRACE(std::to_string(d) + " " + std::to_string(k));
    auto share = [&](const char *scheme, int64_t b, const Choice &choice) {
      Case c = makeCase(scheme, d, k * d, {1, b, 1, 1}, false, choice);
      return 100 * simulate(c.problem, c.schedule).bubbleRatio();
    };
    EXPECT_NEAR(share("gpipe", 2, {}), linear, 0.05);
    EXPECT_NEAR(share("1f1b", 2, {}), linear, 0.05);
    EXPECT_NEAR(share("chimera", 1, {}), ideal, 0.05);
    EXPECT_NEAR(share("chimera", 2, {}), direct, 0.05);
    if (doubling > 0) {
      EXPECT_NEAR(
          share("chimera", 2, chimeraWith(2, Concatenation::FineTunedDoubling)),
          doubling, 0.05);
    }
  }
}

/// With D = 8 workers, fewer micro-batches than stages, and backwards of twice
/// a forward, the bubble ratios are larger than the formula of Table 2 says.
TEST(ChimeraSizes, BelowAUnitIdleMoreThanStated) {
  for (auto [n, simulated, stated] :
       {std::tuple{2, 0.75, 0.60}, {4, 0.57, 0.43}}) {
    Case c = makeCase("chimera", 8, n, {1, 2, 1, 1});
    EXPECT_NEAR(simulate(c.problem, c.schedule).bubbleRatio(), simulated,
                0.005);
    EXPECT_NEAR(6 / (2.0 * n + 6), stated, 0.005);
  }
}

/// An incomplete unit runs like a complete one. The slots of the missing
/// micro-batches are idle.
TEST(ChimeraSizes, OfTheReference) {
  for (auto [d, n, slots, time] :
       {std::tuple{4, 6, 16, 25}, {8, 18, 48, 83}, {4, 4, 10, 16}}) {
    Case c = makeCase("chimera", d, n, {1, 2, 1, 1});
    EXPECT_EQ(slotTiming(c.problem, c.schedule).makespan, slots);
    EXPECT_EQ(simulate(c.problem, c.schedule).makespan, time);
  }
}

/// With a whole model on every worker and an incomplete unit, workers are idle
/// for one forward and one backward in total.
TEST(ChimeraSizes, WholeModelsIdleOnARest) {
  Case c = makeCase("chimera", 2, 3, {4, 5, 1, 1});
  EXPECT_EQ(simulate(c.problem, c.schedule).flushBubble(), 9);
}

/// If a backward takes twice a forward and N = KD, direct concatenation is
/// faster than 1F1B if and only if (K+1)(D-2) < 3(D-1).
TEST(ChimeraSizes, WhereDirectBeatsOneForwardOneBackward) {
  for (int32_t d = 4; d <= 16; d += 2)
    for (int32_t k = 1; k <= 5; ++k) {
      Case direct = makeCase("chimera", d, k * d, {1, 2, 1, 1});
      Case line = makeCase("1f1b", d, k * d, {1, 2, 1, 1});
      EXPECT_EQ(simulate(direct.problem, direct.schedule).makespan <
                    simulate(line.problem, line.schedule).makespan,
                k <= (d == 4 ? 3 : 2))
          << d << " " << k;
    }
}

/// If messages take a quarter of a forward, direct concatenation is faster than
/// 1F1B at D = 4, and slower at D = 8. A unit of time is a quarter of a
/// forward.
TEST(ChimeraSizes, MessagesMoveWhereDirectBeatsOneForwardOneBackward) {
  for (auto [d, direct, line] : {std::tuple{4, 251, 256}, {8, 559, 536}}) {
    for (const char *scheme : {"chimera", "1f1b"}) {
      Case c = makeCase(scheme, d, 4 * d, {4, 8, 1, 1});
      c.problem.link.alpha = 1;
      EXPECT_EQ(simulate(c.problem, c.schedule).makespan,
                scheme[0] == 'c' ? direct : line);
    }
  }
}

/// The bubbles of D=4 and N=8 if a backward takes twice a forward, for messages
/// that take a quarter of a forward or a whole one. A unit of time is a quarter
/// of a forward.
TEST(Messages, CostAlternatingOrdersMost) {
  for (auto [scheme, quarter, whole] :
       {std::tuple{"1f1b", 52, 100}, {"gpipe", 42, 60}, {"chimera", 35, 68}}) {
    Case c = makeCase(scheme, 4, 8, {4, 8, 1, 1});
    c.problem.link.alpha = 1;
    EXPECT_EQ(simulate(c.problem, c.schedule).flushBubble(), quarter) << scheme;
    c.problem.link.alpha = 4;
    EXPECT_EQ(simulate(c.problem, c.schedule).flushBubble(), whole) << scheme;
  }
}

} // namespace
} // namespace chimera::schedule
