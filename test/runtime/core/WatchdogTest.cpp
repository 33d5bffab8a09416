//===- WatchdogTest.cpp - Ends a process that waits for ever --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Watchdog.h"

#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
TEST(WatchdogDeathTest, EndsTheProcessWhenTimeIsUp) {
  EXPECT_EXIT(
      {
        Watchdog watchdog(50ms, "the others to start");
        std::this_thread::sleep_for(10s);
      },
      testing::ExitedWithCode(1),
      "timed out after 0.05 s waiting for the others to start");
}

TEST(Watchdog, LeavesAloneWhatEndsBefore) {
  auto begin = std::chrono::steady_clock::now();
  { Watchdog watchdog(100ms, "nothing"); }
  { Watchdog forever(std::chrono::hours(24 * 366), "nothing"); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 100ms);
  std::this_thread::sleep_for(150ms);
}
} // namespace
