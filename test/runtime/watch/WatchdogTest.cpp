//===- WatchdogTest.cpp - Ends a process that waits for ever --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Watchdog.h"

#include "runtime/watch/EndProcess.h"

#include <future>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
TEST(WatchdogDeathTest, EndsTheProcessWhenTimeIsUp) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Watchdog watchdog(50ms, "the others to start");
        std::this_thread::sleep_for(1h);
      },
      testing::ExitedWithCode(1),
      "timed out after 0.05 s waiting for the others to start");
}

TEST(Watchdog, CallsItsListener) {
  std::promise<std::string> told;
  Watchdog watchdog(50ms, "the others to start",
                    [&](const std::string &reason) { told.set_value(reason); });
  EXPECT_EQ(told.get_future().get(),
            "timed out after 0.05 s waiting for the others to start");
}

/// When a watchdog is destroyed, its thread ends at once, and cannot end the
/// process later. Otherwise this test would take at least an hour.
TEST(Watchdog, EndsAtOnceWhenItIsDropped) {
  for (std::chrono::milliseconds timeout :
       {std::chrono::milliseconds(1h),
        std::chrono::milliseconds(std::chrono::hours(24 * 366))})
    Watchdog(timeout, "nothing");
}
} // namespace
