//===- SizesTest.cpp - Time grows with actions ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/compiler/schedule/Schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

namespace chimera::schedule {
namespace {

/// Processor time of what a compiler asks of the library, in seconds.
double timeOf(const Scheme &scheme, int32_t workers, int32_t microBatches) {
  std::clock_t begin = std::clock();
  Case c = makeCase(scheme.name, workers, microBatches, {}, false,
                    choices(scheme, 4).back());
  c.problem.bytes.assign(c.problem.stages.size(), {1, 1, 1, 1, 1});
  c.problem.memoryCaps.assign(workers, INT32_MAX);
  EXPECT_TRUE(verify(c.problem, c.schedule).empty());
  EXPECT_TRUE(simulate(c.problem, c.schedule).complete);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Sixteen times the actions, of many stages as of many micro-batches. What is
/// quadratic in either would take 256 times as long.
TEST(Sizes, TimeGrowsWithActions) {
  for (const Scheme &scheme : schemes()) {
    bool fills = !canDo(scheme, 4, 1); // needs N >= D
    int32_t few = fills ? 64 : 1500;
    double small = timeOf(scheme, few, fills ? few : 4);
    double large =
        fills ? timeOf(scheme, 4 * few, 4 * few) : timeOf(scheme, 16 * few, 4);
    EXPECT_LT(large, 64 * std::max(small, 1e-3)) << scheme.name;
    small = timeOf(scheme, 4, 1500);
    large = timeOf(scheme, 4, 16 * 1500);
    EXPECT_LT(large, 64 * std::max(small, 1e-3)) << scheme.name;
  }
}

/// Pipelines that get no micro-batch are not laid out: there may be as many as
/// stages, each with a worker for every stage.
TEST(Sizes, OnlyPipelinesWithMicroBatchesAreLaid) {
  constexpr int32_t kWorkers = 60000;
  std::vector<Pipeline> laid =
      makeCase("chimera", kWorkers, 3, {}, false, choose(kWorkers))
          .problem.pipelines;
  ASSERT_EQ(laid.size(), 3u);
  EXPECT_EQ(laid[2].workers.front(), 2);
  EXPECT_EQ(laid[2].microBatches, std::vector<int32_t>{2});
}

} // namespace
} // namespace chimera::schedule
