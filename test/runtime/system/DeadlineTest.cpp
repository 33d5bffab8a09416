//===- DeadlineTest.cpp - When a wait times out ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Deadline.h"

#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
const Deadline::Clock::time_point kBegin{};

TEST(Deadline, PassesAfterTheTimeout) {
  Deadline deadline(1500ms, kBegin);
  EXPECT_FALSE(deadline.passed(kBegin + 800ms));
  EXPECT_FALSE(deadline.passed(kBegin + 1499ms));
  EXPECT_TRUE(deadline.passed(kBegin + 1500ms));
  EXPECT_TRUE(deadline.passed(kBegin + 1501ms));
}

TEST(Deadline, DoesNotCountTheTimeInWhichTheProcessIsStopped) {
  Deadline deadline(3s, kBegin);
  EXPECT_FALSE(deadline.passed(kBegin + 1s));
  // The deadline was not checked for an hour, but only one second of this hour
  // counts.
  EXPECT_FALSE(deadline.passed(kBegin + 1h));
  EXPECT_FALSE(deadline.passed(kBegin + 1h + 900ms));
  EXPECT_TRUE(deadline.passed(kBegin + 1h + 1s));
}

TEST(Deadline, OfAYearNeverPasses) {
  Deadline deadline(std::chrono::hours(24 * 366), kBegin);
  for (int second = 0; second < 100; ++second)
    EXPECT_FALSE(deadline.passed(kBegin + std::chrono::hours(10000 * second)));
}

TEST(Deadline, MayBeTheLongestThereIs) {
  constexpr auto kLongest = std::chrono::milliseconds::max();
  EXPECT_GE(watcherTimeout(kLongest), kForever);
  EXPECT_EQ(watcherTimeout(1s), 1500ms);
  Deadline deadline(kLongest, kBegin);
  EXPECT_FALSE(deadline.passed(kBegin + 1h));
}
} // namespace
