//===- ConformanceTest.cpp - Behaviour of every control -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/control/World.h"

#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
class ControlConformance : public testing::TestWithParam<World> {};

/// The `k`-th message from rank `from` to rank `to`.
std::vector<std::byte> payload(uint32_t from, uint32_t to, uint32_t k) {
  static const size_t sizes[] = {0, 1, 7, 64, 4096, 65537, 3, 1 << 20};
  std::vector<std::byte> bytes(sizes[(k + from + 2 * to) % std::size(sizes)]);
  uint32_t x = from * 7919 + to * 104729 + k * 31 + 1;
  for (std::byte &byte : bytes)
    byte = static_cast<std::byte>((x = x * 1664525 + 1013904223) >> 24);
  return bytes;
}

// The largest messages exceed the bytes that a rank may send ahead (kUnread).
// So each rank must receive while its predecessor sends.
TEST_P(ControlConformance, MessagesArriveInOrder) {
  onEachRank(GetParam(), [&](Control &control) {
    ASSERT_EQ(control.ranks(), GetParam().ranks);
    uint32_t self = control.rank();
    for (uint32_t from = 0; from < GetParam().ranks; ++from)
      for (uint32_t k = 0; k < 16; ++k) {
        if (from == self) {
          for (uint32_t to = 0; to < GetParam().ranks; ++to)
            if (to != self)
              control.send(to, payload(self, to, k), kTimeout);
          continue;
        }
        std::vector<std::byte> expected = payload(from, self, k);
        std::vector<std::byte> got(expected.size());
        control.receive(from, got, kTimeout);
        EXPECT_EQ(got, expected) << from << " " << k;
      }
  });
}

// All ranks send to all ranks, including themselves, before any rank receives.
TEST_P(ControlConformance, SmallMessagesWaitForNobody) {
  constexpr uint32_t kMessages = 500;
  onEachRank(GetParam(), [&](Control &control) {
    for (uint32_t k = 0; k < kMessages; ++k)
      for (uint32_t to = 0; to < GetParam().ranks; ++to) {
        std::vector<std::byte> word(16, static_cast<std::byte>(k));
        control.send(to, word, 0ms);
        // The sender may reuse the memory.
        std::ranges::fill(word, std::byte(99));
      }
    for (uint32_t from = 0; from < GetParam().ranks; ++from)
      for (uint32_t k = 0; k < kMessages; ++k) {
        std::vector<std::byte> word(16);
        control.receive(from, word, kTimeout);
        ASSERT_EQ(word, std::vector<std::byte>(16, static_cast<std::byte>(k)));
      }
  });
}

// Messages of ranks that have left still arrive. When a rank has left, its
// connections are gone, but no other rank takes this for a failure.
TEST_P(ControlConformance, RanksLeaveBeforeOthersReceive) {
  constexpr uint32_t kMessages = 16;
  auto leavesEarly = [](uint32_t rank) { return rank % 2 == 1; };
  std::atomic<int> news = 0;
  onEachRank(
      GetParam(),
      [&](Control &control) {
        control.onAbort([&](const std::string &) { ++news; });
        uint32_t self = control.rank();
        if (leavesEarly(self)) {
          for (uint32_t k = 0; k < kMessages; ++k)
            for (uint32_t to = 0; to < GetParam().ranks; ++to)
              if (!leavesEarly(to))
                control.send(to, payload(self, to, 8 * k), kTimeout);
          return;
        }
        for (uint32_t from = 0; from < GetParam().ranks; ++from)
          for (uint32_t k = 0; leavesEarly(from) && k < kMessages; ++k) {
            if (k % 4 == 0)
              std::this_thread::sleep_for(10ms);
            std::vector<std::byte> expected = payload(from, self, 8 * k);
            std::vector<std::byte> got(expected.size());
            control.receive(from, got, kTimeout);
            EXPECT_EQ(got, expected) << from << " " << k;
          }
      },
      WhenToLeave::AtOnce);
  EXPECT_EQ(news, 0);
}

TEST_P(ControlConformance, AReceiveTimesOut) {
  onEachRank(GetParam(), [&](Control &control) {
    std::vector<std::byte> word(8);
    uint32_t peer = (control.rank() + 1) % GetParam().ranks;
    try {
      control.receive(peer, word, 200ms);
      FAIL() << "received what nobody sent";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::TimedOut);
      EXPECT_NE(std::string(error.what())
                    .find("timed out after 0.2 s waiting for rank " +
                          std::to_string(peer)),
                std::string::npos)
          << error.what();
    }
  });
}

TEST_P(ControlConformance, ALargeSendThatNobodyReceivesTimesOut) {
  if (GetParam().ranks < 2)
    return;
  std::promise<void> hasTimedOut;
  onEachRank(GetParam(), [&](Control &control) {
    std::vector<std::byte> large(32 << 20);
    if (control.rank() == 0) {
      EXPECT_THROW(control.send(1, large, 200ms), WaitError);
      hasTimedOut.set_value();
      // The job can continue: the message that timed out can still be received,
      // and then another one.
      control.send(1, std::vector<std::byte>(1), kTimeout);
    } else if (control.rank() == 1) {
      hasTimedOut.get_future().wait();
      control.receive(0, large, kTimeout);
      control.receive(0, std::span(large).first(1), kTimeout);
    }
  });
}

TEST_P(ControlConformance, AbortEndsEveryWait) {
  onEachRank(GetParam(), [&](Control &control) {
    const uint32_t last = GetParam().ranks - 1;
    std::vector<std::byte> word(8);
    // A rank that is still connecting could not catch the error of the abort.
    control.send(last, word, kTimeout);
    if (control.rank() == last) {
      for (uint32_t rank = 0; rank <= last; ++rank)
        control.receive(rank, word, kTimeout);
      std::this_thread::sleep_for(100ms);
      control.abort("the test says so");
      control.abort("a later reason");
    }
    try {
      control.receive(control.rank() / 2, word, kTimeout);
      FAIL() << "the wait of rank " << control.rank() << " succeeded";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::Aborted);
      EXPECT_NE(std::string(error.what()).find("the test says so"),
                std::string::npos)
          << error.what();
    }
    EXPECT_THROW(control.receive(0, word, kTimeout), WaitError) << "again";
  });
}

TEST_P(ControlConformance, SizesMustAgree) {
  onEachRank(GetParam(), [&](Control &control) {
    uint32_t next = (control.rank() + 1) % GetParam().ranks;
    uint32_t before =
        (control.rank() + GetParam().ranks - 1) % GetParam().ranks;
    control.send(next, std::vector<std::byte>(16), kTimeout);
    control.send(next, std::vector<std::byte>(8), kTimeout);
    std::vector<std::byte> word(24);
    EXPECT_THROW(control.receive(before, word, kTimeout),
                 std::invalid_argument);
    control.receive(before, std::span(word).first(8), kTimeout);
  });
}

TEST_P(ControlConformance, RanksMustExist) {
  onEachRank(GetParam(), [&](Control &control) {
    std::vector<std::byte> word(1);
    EXPECT_THROW(control.send(GetParam().ranks, word, kTimeout),
                 std::invalid_argument);
    EXPECT_THROW(control.receive(GetParam().ranks, word, kTimeout),
                 std::invalid_argument);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ControlConformance,
                         testing::ValuesIn(worlds()),
                         testing::PrintToStringParamName());
} // namespace
