//===- ConformanceFailuresTest.cpp - How all channels must fail -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/channel/Conformance.h"

#include <algorithm>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
TEST_P(Conformance, WaitTimesOut) {
  onEachRank(GetParam(), [&](Rank &rank) {
    Values<uint8_t> values(rank, std::vector<uint8_t>(8));
    auto begin = std::chrono::steady_clock::now();
    uint32_t peer = (rank.rank() + 1) % GetParam().ranks;
    try {
      rank.wait(receive(rank, peer, values), 200ms);
      FAIL() << "received what nobody sent";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::TimedOut);
      // The message names the rank for which the host waits: the peer or, if
      // hosts do not wait for each other, its own device.
      std::string awaited =
          "rank " +
          std::to_string(GetParam().hostsWaitForPeers() ? peer : rank.rank());
      EXPECT_NE(std::string(error.what()).find(awaited), std::string::npos)
          << error.what();
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 200ms);
  });
}

TEST_P(Conformance, AbortEndsEveryWait) {
  onEachRank(GetParam(), [&](Rank &rank) {
    Values<uint64_t> values(rank, std::vector<uint64_t>(100));
    Values<uint64_t> sum(rank, std::vector<uint64_t>(100));
    uint32_t self = rank.rank(), last = GetParam().ranks - 1;
    // Abort while this rank waits for something that never happens.
    std::thread other([&] {
      std::this_thread::sleep_for(100ms);
      rank.channels.abort("the test says so");
      rank.channels.abort("a later reason");
    });
    try {
      if (self % 2 || self == last)
        rank.wait(receive(rank, 0, values), kTimeout);
      else {
        // No other rank starts this all-reduce.
        ReduceGroup group{self, {0, last, self}};
        std::vector<ConstBytes> given(std::count(group.contributors.begin(),
                                                 group.contributors.end(),
                                                 self),
                                      values.bytes());
        rank.wait(rank.channels.startAllReduce(group, ElementType::UInt64,
                                               given, sum.bytes(), sum.after()),
                  kTimeout);
      }
      ADD_FAILURE() << "the wait of rank " << self << " succeeded";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::Aborted);
      EXPECT_NE(std::string(error.what()).find("the test says so"),
                std::string::npos)
          << error.what();
    }
    other.join();
  });
}

TEST_P(Conformance, SizesMustAgree) {
  if (GetParam().ranks < 2)
    return;
  if (GetParam().kind == World::Nccl)
    GTEST_SKIP() << "NCCL does not look";
  onEachRank(GetParam(), [&](Rank &rank) {
    if (rank.rank() > 1)
      return;
    Values<uint8_t> values(rank, std::vector<uint8_t>(rank.rank() ? 24 : 16));
    // Some channels report the different sizes only to the receiver, so the
    // send may succeed.
    if (rank.rank() == 0)
      try {
        rank.wait(send(rank, 1, values), kTimeout);
      } catch (const std::exception &) {
      }
    if (rank.rank() == 1) {
      EXPECT_ANY_THROW(rank.wait(receive(rank, 0, values), kTimeout));
    }
  });
}

TEST_P(Conformance, AllReduceRefusesWhatDoesNotFit) {
  onEachRank(GetParam(), [&](Rank &rank) {
    Values<double> values(rank, std::vector<double>(4));
    Values<double> sum(rank, std::vector<double>(4));
    Values<double> shorter(rank, std::vector<double>(3));
    uint32_t self = rank.rank();
    ConstBytes given = values.bytes();
    auto start = [&](std::vector<uint32_t> contributors,
                     std::vector<ConstBytes> bytes, Bytes result) {
      rank.channels.startAllReduce({9, contributors}, ElementType::Float64,
                                   bytes, result, sum.after());
    };
    EXPECT_THROW(start({self + 1}, {}, sum.bytes()), std::invalid_argument);
    EXPECT_THROW(start({self}, {given, given}, sum.bytes()),
                 std::invalid_argument);
    EXPECT_THROW(start({self}, {given}, shorter.bytes()),
                 std::invalid_argument);
    EXPECT_THROW(start({self}, {given.first(12)}, sum.bytes().first(12)),
                 std::invalid_argument);
  });
}

TEST_P(Conformance, RanksMustExist) {
  onEachRank(GetParam(), [&](Rank &rank) {
    Values<uint8_t> values(rank, {1});
    EXPECT_THROW(send(rank, GetParam().ranks, values), std::invalid_argument);
    EXPECT_THROW(receive(rank, GetParam().ranks, values),
                 std::invalid_argument);
  });
}
} // namespace
