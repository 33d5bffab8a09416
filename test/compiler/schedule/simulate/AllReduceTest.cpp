//===- AllReduceTest.cpp - When all-reduces start -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/AllReduce.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace chimera::schedule {
namespace {

/// The end of the last action that adds to the gradient of this contribution.
int64_t endOf(const Case &c, const Timing &timing,
              const GradientReduce::Contribution &contribution) {
  return timing.starts[contribution.worker][contribution.lastAction] +
         c.problem.cost(
             c.schedule.workers[contribution.worker][contribution.lastAction]);
}

/// The stages whose all-reduce starts early (during idle time). All workers
/// with a replica of a stage must agree.
std::set<int32_t> earlyStages(const Case &c) {
  std::set<int32_t> early;
  Timing timing = simulate(c.problem, c.schedule);
  for (const GradientReduce &reduce :
       gradientReduces(c.problem, c.schedule, timing)) {
    auto count = std::ranges::count_if(
        reduce.contributions,
        [](const GradientReduce::Contribution &p) { return p.isIdle; });
    EXPECT_TRUE(count == 0 || count == std::ssize(reduce.contributions))
        << "stage " << *reduce.stage;
    if (count > 0)
      early.insert(*reduce.stage);
  }
  return early;
}

std::set<int32_t> stagesAbove(int32_t first, int32_t end) {
  std::set<int32_t> stages;
  for (int32_t s = first + 1; s < end; ++s)
    stages.insert(s);
  return stages;
}

/// Section 3.2 of Chimera's paper: with two pipelines, a worker has idle time
/// after its last backward of a stage above D/2. It has none after its last
/// backward of stage D/2 or a lower stage.
TEST(AllReduce, StartsStagesAboveHalfEarlyWithTwoPipelines) {
  for (int32_t d = 2; d <= 16; d += 2)
    for (int32_t units = 1; units <= 3; ++units)
      for (int64_t backward : {1, 2, 3}) {
        SCOPED_TRACE("D=" + std::to_string(d) + " K=" + std::to_string(units) +
                     " b=" + std::to_string(backward));
        Case c = makeCase("chimera", d, d * units, {1, backward, 1, 1, 1});
        EXPECT_EQ(earlyStages(c), stagesAbove(d / 2, d));
      }
}

/// With 2f pipelines on D workers, some all-reduces start early if a worker is
/// ever idle. With f = D/2 no worker is idle.
TEST(AllReduce, StartsEarlyIfIdleTimeIsLeftWithMorePipelines) {
  for (int32_t d = 4; d <= 16; d += 2)
    for (int32_t f = 2; f <= d / 2; ++f) {
      if (d / 2 % f)
        continue;
      SCOPED_TRACE("D=" + std::to_string(d) + " f=" + std::to_string(f));
      Case c = makeCase("chimera", d, d, {}, false, chimeraWith(2 * f));
      Timing timing = simulate(c.problem, c.schedule);
      int64_t early = 0;
      for (const GradientReduce &reduce :
           gradientReduces(c.problem, c.schedule, timing)) {
        EXPECT_EQ(reduce.contributions.size(), 2u * f);
        for (const GradientReduce::Contribution &contribution :
             reduce.contributions) {
          const std::vector<int64_t> &starts =
              timing.starts[contribution.worker];
          int64_t ready = endOf(c, timing, contribution);
          // Another definition of idle: the actions that start after `ready`
          // take less time than remains. Each action takes 1.
          int64_t later =
              starts.end() - std::ranges::lower_bound(starts, ready);
          EXPECT_EQ(contribution.isIdle, ready + later <= starts.back())
              << "stage " << *reduce.stage;
          early += contribution.isIdle;
        }
      }
      EXPECT_EQ(early > 0, 2 * f < d);
    }
}

TEST(AllReduce, IsInTheOrderInWhichSumsAreComplete) {
  for (const char *scheme : {"gpipe", "1f1b", "chimera"})
    for (int32_t d = 2; d <= 8; d += 2) {
      Case c = makeCase(scheme, d, d);
      std::vector<GradientReduce> reduces = gradientReduces(
          c.problem, c.schedule, simulate(c.problem, c.schedule));
      ASSERT_EQ(reduces.size(), size_t(d));
      for (int32_t k = 0; k < d; ++k)
        EXPECT_EQ(reduces[k].stage, d - 1 - k) << scheme << " D=" << d;
    }
}

/// If one worker has both stages that share parameters, it adds their gradients
/// without a message.
TEST(AllReduce, SumsReplicasAndTiedParameters) {
  EXPECT_TRUE(hasAllReduces(makeCase("chimera", 2, 2).problem));
  Problem alone = makeCase("gpipe", 4, 4).problem;
  EXPECT_FALSE(hasAllReduces(alone));
  alone.tiedBytes = 8;
  EXPECT_TRUE(hasAllReduces(alone));
  alone.pipelines.front().workers = {0, 1, 1, 0};
  EXPECT_FALSE(hasAllReduces(alone));
  alone.width = 2;
  EXPECT_TRUE(hasAllReduces(alone));
}

/// The first and the last stage share a matrix. One all-reduce sums its
/// gradient over both stages. A worker is ready for it after the later of its
/// contributions to the two stages. The all-reduces of the two stages do not
/// include the matrix.
TEST(AllReduce, SumsTiedParametersOnce) {
  for (const char *scheme : {"gpipe", "chimera", "gems"})
    for (int32_t d = 2; d <= 8; d += 2) {
      SCOPED_TRACE(std::string(scheme) + " D=" + std::to_string(d));
      Case c = makeCase(scheme, d, d);
      c.problem.bytes.assign(d, {100, 200, 10, 10, 10});
      Timing timing = simulate(c.problem, c.schedule);
      std::vector<GradientReduce> untied =
          gradientReduces(c.problem, c.schedule, timing);
      c.problem.tiedBytes = 30;
      ASSERT_EQ(check(c.problem), "");
      std::vector<GradientReduce> reduces =
          gradientReduces(c.problem, c.schedule, timing);
      ASSERT_EQ(reduces.size(), size_t(d) + 1);
      std::map<int32_t, int64_t> ready; // worker -> time
      for (const GradientReduce &reduce : untied)
        if (reduce.stage == 0 || reduce.stage == d - 1)
          for (const GradientReduce::Contribution &contribution :
               reduce.contributions)
            ready[contribution.worker] = std::max(
                ready[contribution.worker], endOf(c, timing, contribution));
      const GradientReduce &tied = reduces.back();
      EXPECT_EQ(tied.stage, std::nullopt);
      EXPECT_EQ(tied.bytes, 30);
      ASSERT_EQ(tied.contributions.size(), ready.size());
      for (const GradientReduce::Contribution &contribution :
           tied.contributions)
        EXPECT_EQ(endOf(c, timing, contribution), ready[contribution.worker])
            << contribution.worker;
      for (int32_t k = 0; k < d; ++k) {
        EXPECT_EQ(reduces[k].stage, untied[k].stage);
        EXPECT_EQ(reduces[k].bytes, k == 0 || k == d - 1 ? 70 : 100);
      }
    }
}

TEST(AllReduce, TakesRabenseifnersTime) {
  EXPECT_EQ(allReduceTime(MessageTime{5, 7, 1}, 1, 1000), 0);
  EXPECT_EQ(allReduceTime(MessageTime{5, 0, 1}, 2, 1000), 2 * 5);
  EXPECT_EQ(allReduceTime(MessageTime{5, 0, 1}, 8, 1000), 6 * 5);
  EXPECT_EQ(allReduceTime(MessageTime{5, 0, 1}, 9, 1000), 8 * 5);
  EXPECT_EQ(allReduceTime(MessageTime{0, 3, 1}, 2, 100), 3 * 100);
  EXPECT_EQ(allReduceTime(MessageTime{0, 3, 10}, 4, 100), 45);
  // Rounded up: 2 * 2/3 * 100 / 7 = 19.04...
  EXPECT_EQ(allReduceTime(MessageTime{0, 1, 7}, 3, 100), 20);
  // Each bucket adds its own latencies. The time for the bytes stays the same.
  EXPECT_EQ(allReduceTime(MessageTime{5, 3, 10}, 4, 100, 7), 7 * 4 * 5 + 45);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(allReduceTime(MessageTime{0, kMost, 1}, 4, kMost), kMost);
  EXPECT_EQ(allReduceTime(MessageTime{kMost, 0, 1}, 4, 8), kMost);
  EXPECT_EQ(allReduceTime(MessageTime{kMost / 64, 0, 1}, 2, 8, kMost / 8),
            kMost);
  EXPECT_EQ(allReduceTime(MessageTime{kMost, 0, 1}, 1, 8, 2), 0);
  // For r replicas, doubling takes ceil(log2(r)) exchanges, each of all bytes.
  constexpr auto kDoubling = AllReduceAlgorithm::Doubling;
  EXPECT_EQ(allReduceTime(MessageTime{5, 3, 10}, 1, 100, 7, kDoubling), 0);
  EXPECT_EQ(allReduceTime(MessageTime{5, 3, 10}, 4, 100, 7, kDoubling),
            2 * (7 * 5 + 30));
  EXPECT_EQ(allReduceTime(MessageTime{5, 3, 10}, 5, 100, 1, kDoubling),
            3 * (5 + 30));
  EXPECT_EQ(allReduceTime(MessageTime{kMost, 0, 1}, 4, 8, 1, kDoubling), kMost);
}

/// A bucket has the largest multiple of 8 bytes that is allowed. The buckets of
/// a gradient together have all of its bytes.
TEST(AllReduce, CutsGradientsIntoBuckets) {
  for (int64_t bytes = 0; bytes <= 80; ++bytes) {
    EXPECT_EQ(bucketsOf(bytes, 0).count, 1);
    EXPECT_EQ(bucketsOf(bytes, 0).last, bytes);
    for (int64_t most = 8; most <= 90; ++most) {
      SCOPED_TRACE(std::to_string(bytes) + " by " + std::to_string(most));
      auto [count, each, last] = bucketsOf(bytes, most);
      EXPECT_EQ((count - 1) * each + last, bytes);
      EXPECT_LE(last, each);
      if (bytes > 0) {
        EXPECT_GT(last, 0);
      }
      if (count > 1) {
        EXPECT_EQ(each % 8, 0);
        EXPECT_LE(each, most);
        EXPECT_GT(each + 8, most);
      } else {
        EXPECT_LE(bytes, most);
      }
    }
  }
}

/// The gradients of all stages are cut into buckets, except for the middle
/// stage: both of its replicas are on one worker.
TEST(AllReduce, IsInBuckets) {
  Case c = makeCase("chimera", 3, 3);
  c.problem.bytes.assign(3, {100, 0, 0, 0, 0});
  c.problem.bytes[2].weights = 60;
  c.problem.tiedBytes = 40;
  c.problem.bucketBytes = 17;
  std::map<std::optional<int32_t>, int64_t> buckets;
  for (const GradientReduce &reduce :
       gradientReduces(c.problem, c.schedule, simulate(c.problem, c.schedule)))
    buckets[reduce.stage] = reduce.buckets;
  // A bucket has at most 16 bytes, because 17 is rounded down to a multiple of
  // 8. Without the 40 bytes of tied parameters, the first stage's gradient has
  // 60 bytes and the last stage's 20.
  EXPECT_EQ(buckets, (std::map<std::optional<int32_t>, int64_t>{
                         {0, 4}, {1, 1}, {2, 2}, {std::nullopt, 3}}));
}

TEST(AllReduceTime, CountsItsEndsOnce) {
  const std::vector<int32_t> one = {0}, two = {0, 1}, four = {0, 1, 2, 3};
  Workload work;
  work.workers = 4;
  work.width = 4;
  work.allReduceMessage = {5, 3, 10};
  EXPECT_EQ(allReduceTime(work, one, 100, 1), 4 * 5 + 45);
  work.allReduceOverhead = {7, 2, 1};
  EXPECT_EQ(allReduceTime(work, one, 100, 1), 4 * 5 + 45 + 7 + 200);
  work.allReduceAlgorithm = AllReduceAlgorithm::Doubling;
  EXPECT_EQ(allReduceTime(work, one, 100, 2), 2 * (2 * 5 + 30) + 2 * 7 + 200);
  work.width = 1;
  EXPECT_EQ(allReduceTime(work, one, 100, 1), 0);
  EXPECT_EQ(allReduceTime(work, two, 100, 1), 5 + 30 + 7 + 200);
  // If messages of all-reduces have no times of their own, the times of the
  // link are used.
  work.allReduceMessage.reset();
  work.allReduceOverhead = {};
  work.link = {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}};
  EXPECT_EQ(allReduceTime(work, four, 100, 1), 2 * (1 + 2 + 3));
}

TEST(AllReduceTime, IsThatOfTheLinksThatJoinAllReplicas) {
  Workload work;
  work.workers = 4;
  work.link = {{100, 0, 1}};
  work.node = {8, {{{1, 0, 1}}}};
  work.width = 2;
  // With two copies, all eight ranks are on one node. With four copies there
  // are sixteen ranks, so the replicas of a worker are on two nodes.
  EXPECT_EQ(allReduceTime(work, std::vector{1}, 8, 1), 2 * 1);
  EXPECT_EQ(allReduceTime(work, std::vector{0, 3}, 8, 1), 4 * 1);
  work.width = 4;
  EXPECT_EQ(allReduceTime(work, std::vector{1}, 8, 1), 4 * 100);
  // With one copy, the two workers may be on the same node or on different
  // nodes.
  work.width = 1;
  work.node->devices = 2;
  EXPECT_EQ(allReduceTime(work, std::vector{2, 3}, 8, 1), 2 * 1);
  EXPECT_EQ(allReduceTime(work, std::vector{1, 2}, 8, 1), 2 * 100);
}

} // namespace
} // namespace chimera::schedule
