//===- ClocksTest.cpp - Offsets between ranks' clocks ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Clocks.h"

#include "runtime/control/InProcess.h"
#include "runtime/interpreter/Status.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// The offsets between clocks that rank 1 (the root) finds. Rank r has
/// `clocks[r]`.
std::vector<ClockOffset> offsetsOf(const std::vector<Clock> &clocks) {
  const auto ranks = static_cast<uint32_t>(clocks.size());
  std::vector<std::unique_ptr<Control>> controls = makeInProcessControls(ranks);
  std::vector<ClockOffset> offsets;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<ClockOffset> own =
          gatherClocks(*controls[rank], /*root=*/1, 30s, clocks[rank]);
      if (rank == 1)
        offsets = own;
      else
        EXPECT_TRUE(own.empty());
    });
  for (std::thread &thread : threads)
    thread.join();
  return offsets;
}

/// A clock that is `nanoseconds` ahead of this host's clock. `number` is its
/// identity.
Clock ahead(uint64_t number, int64_t nanoseconds) {
  return {number, [nanoseconds] { return steadyNanoseconds() + nanoseconds; }};
}

TEST(Clocks, OfOneHostAreNotCompared) {
  EXPECT_NE(clockOfHost().identity, 0u);
  EXPECT_EQ(clockOfHost().identity, clockOfHost().identity);
  for (const ClockOffset &offset :
       offsetsOf({clockOfHost(), clockOfHost(), clockOfHost()})) {
    EXPECT_TRUE(offset.isShared);
    EXPECT_EQ(offset.ahead, 0);
    EXPECT_EQ(offset.error, 0);
  }
}

TEST(Clocks, OfOtherHostsAreComparedToHalfARoundTrip) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::vector<ClockOffset> offsets =
      offsetsOf({ahead(7, 0), ahead(8, 5 * kSecond), ahead(9, -kSecond),
                 ahead(8, 5 * kSecond)});
  ASSERT_EQ(offsets.size(), 4u);
  const int64_t expected[] = {-5 * kSecond, 0, -6 * kSecond, 0};
  for (size_t rank = 0; rank < offsets.size(); ++rank) {
    const ClockOffset &offset = offsets[rank];
    EXPECT_EQ(offset.isShared, rank == 1 || rank == 3);
    EXPECT_LE(std::abs(offset.ahead - expected[rank]), offset.error) << rank;
    EXPECT_LT(offset.error, kSecond);
  }
}

TEST(Clocks, WithoutANumberAreCompared) {
  std::vector<ClockOffset> offsets = offsetsOf({ahead(0, 0), ahead(0, 0)});
  EXPECT_FALSE(offsets[0].isShared);
  EXPECT_LE(std::abs(offsets[0].ahead), offsets[0].error);
}
} // namespace
