//===- ParallelForTest.cpp - Loops over elements on a rank's threads ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/ParallelFor.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

using namespace chimera::runtime;

namespace {
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs rangesOf(int64_t count, int64_t grain) {
  Pairs ranges;
  parallelFor(count, grain, [&](int64_t begin, int64_t end) {
    ranges.push_back({begin, end});
  });
  return ranges;
}

void inThirds(int64_t count, int64_t, const RangeFunction &work) {
  for (int64_t k = 0; k < 3; ++k)
    work(count * k / 3, count * (k + 1) / 3);
}

TEST(ParallelFor, IsOneRangeWithoutAThreadPool) {
  EXPECT_EQ(rangesOf(10, 2), (Pairs{{0, 10}}));
  EXPECT_EQ(rangesOf(0, 2), Pairs());
}

TEST(ParallelFor, UsesTheGivenThreadPool) {
  setParallelFor(inThirds);
  EXPECT_EQ(rangesOf(9, 2), (Pairs{{0, 3}, {3, 6}, {6, 9}}));
  EXPECT_EQ(rangesOf(9, 9), (Pairs{{0, 9}})) << "not worth a thread";
  Pairs elsewhere;
  std::thread([&] { elsewhere = rangesOf(9, 2); }).join();
  EXPECT_EQ(elsewhere, (Pairs{{0, 9}})) << "lent to another thread";
  setParallelFor(nullptr);
  EXPECT_EQ(rangesOf(9, 2), (Pairs{{0, 9}}));
}
} // namespace
