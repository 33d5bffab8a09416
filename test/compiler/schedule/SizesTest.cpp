//===- SizesTest.cpp - Time grows linearly with actions -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Simulate.h"
#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>

namespace chimera::schedule {
namespace {

/// Processor time, in seconds, of all calls of this library that a compiler
/// makes for one schedule.
double timeOfCalls(const Scheme &scheme, int32_t workers,
                   int32_t microBatches) {
  std::clock_t begin = std::clock();
  Case c = makeCase(scheme.name, workers, microBatches, {}, false,
                    choices(scheme, 4).back());
  c.problem.bytes.assign(c.problem.stages.size(), {1, 1, 1, 1, 1});
  c.problem.memoryCaps.assign(workers, INT32_MAX);
  EXPECT_TRUE(verify(c.problem, c.schedule).empty());
  EXPECT_TRUE(simulate(c.problem, c.schedule).complete);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Whether sixteen times as many actions take less than 64 times as long. A
/// quadratic algorithm takes 256 times as long. Other processes can only
/// lengthen a time. So this function compares the shortest of all measured
/// times, and measures again, up to twenty times, while the ratio is too large.
/// It measures the short time more often: if this time was too long, a
/// quadratic algorithm could pass.
bool growsWithActions(const std::function<double()> &timeOfFew,
                      const std::function<double()> &timeOfMany) {
  double few = std::numeric_limits<double>::infinity(), many = few;
  for (int attempt = 0; attempt < 20; ++attempt) {
    for (int i = 0; i < 3; ++i)
      few = std::min(few, timeOfFew());
    many = std::min(many, timeOfMany());
    if (many < 64 * std::max(few, 1e-3))
      return true;
  }
  return false;
}

/// Measures the time for many stages, and the time for many micro-batches.
TEST(Sizes, TimeGrowsWithActions) {
  for (const Scheme &scheme : schemes()) {
    bool fills = !canPlan(scheme, 4, 1); // needs N >= D
    int32_t few = fills ? 64 : 1500;
    EXPECT_TRUE(growsWithActions(
        [&] { return timeOfCalls(scheme, few, fills ? few : 4); },
        [&] {
          return fills ? timeOfCalls(scheme, 4 * few, 4 * few)
                       : timeOfCalls(scheme, 16 * few, 4);
        }))
        << scheme.name << ", stages";
    EXPECT_TRUE(
        growsWithActions([&] { return timeOfCalls(scheme, 4, 1500); },
                         [&] { return timeOfCalls(scheme, 4, 16 * 1500); }))
        << scheme.name << ", micro-batches";
  }
}

/// Only pipelines with micro-batches get a placement. Otherwise this plan would
/// have 60000 pipelines, each with 60000 stages to place.
TEST(Sizes, OnlyPipelinesWithMicroBatchesAreLaid) {
  constexpr int32_t kWorkers = 60000;
  std::vector<Pipeline> laid =
      makeCase("chimera", kWorkers, 3, {}, false, chimeraWith(kWorkers))
          .problem.pipelines;
  ASSERT_EQ(laid.size(), 3u);
  EXPECT_EQ(laid[2].workers.front(), 2);
  EXPECT_EQ(laid[2].microBatches, std::vector<int32_t>{2});
}

} // namespace
} // namespace chimera::schedule
