//===- MessagesTest.cpp - Messages of any size ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Messages.h"

#include "test/runtime/control/World.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
class Messages : public testing::TestWithParam<World> {};

TEST_P(Messages, ValuesOfAllRanksAreGatheredAtOne) {
  onEachRank(GetParam(), [&](Control &control) {
    for (uint32_t root = 0; root < GetParam().ranks; ++root) {
      std::vector<uint32_t> values =
          gatherValues(control, root, 7 * control.rank(), kTimeout);
      std::vector<uint32_t> expected;
      for (uint32_t rank = 0; rank < GetParam().ranks && control.rank() == root;
           ++rank)
        expected.push_back(7 * rank);
      EXPECT_EQ(values, expected);
    }
  });
}

TEST_P(Messages, LargeMessagesAreSplit) {
  onEachRank(GetParam(), [&](Control &control) {
    std::vector<std::byte> large((33 << 20) + 5, std::byte(control.rank()));
    if (control.rank() > 1 || GetParam().ranks < 2)
      return;
    if (control.rank() == 1)
      return sendLarge(control, 0, large, kTimeout);
    int pieces = 0;
    receiveLarge(control, 1, large, kTimeout, [&] { ++pieces; });
    EXPECT_EQ(pieces, 3);
    EXPECT_EQ(large, std::vector<std::byte>(large.size(), std::byte(1)));
  });
}

TEST_P(Messages, NobodyLeavesABarrierBeforeAllAreThere) {
  // The number of ranks that have reached each barrier. Ranks are threads.
  std::vector<std::atomic<uint32_t>> arrived(GetParam().ranks);
  onEachRank(GetParam(), [&](Control &control) {
    // In each round, another rank is the last one to reach the barrier.
    for (uint32_t last = 0; last < GetParam().ranks; ++last) {
      if (control.rank() == last)
        std::this_thread::sleep_for(20ms);
      ++arrived[last];
      barrier(control, kTimeout, "all ranks");
      EXPECT_EQ(arrived[last], GetParam().ranks);
    }
  });
}

TEST_P(Messages, ABarrierThatTimesOutSaysWhatFor) {
  if (GetParam().ranks < 2)
    return;
  onEachRank(GetParam(), [&](Control &control) {
    if (control.rank() == 0)
      return;
    try {
      barrier(control, 200ms, "all ranks to start");
      FAIL() << "met without rank 0";
    } catch (const WaitError &error) {
      EXPECT_STREQ(error.what(),
                   "timed out after 0.2 s waiting for all ranks to start");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Messages, testing::ValuesIn(worlds()),
                         testing::PrintToStringParamName());
} // namespace
