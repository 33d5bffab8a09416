//===- EndProcessTest.cpp - How the process ends immediately --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/EndProcess.h"

#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
TEST(EndProcessDeathTest, EndsAsItsHandlerSays) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status + 1); });
        endProcess(41);
      },
      testing::ExitedWithCode(42), "");
}

TEST(EndProcessDeathTest, TerminatesWhereNobodySaysHow) {
  EXPECT_EXIT(
      {
        setEndProcess(nullptr);
        endProcess(1);
      },
      testing::KilledBySignal(SIGABRT), "");
}

TEST(EndProcessDeathTest, TerminatesWhereTheOwnerReturns) {
  EXPECT_EXIT(
      {
        setEndProcess([](int) {});
        endProcess(1);
      },
      testing::KilledBySignal(SIGABRT), "");
}
} // namespace
