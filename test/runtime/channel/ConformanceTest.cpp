//===- ConformanceTest.cpp - Messages that all channels must deliver ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/channel/Conformance.h"
#include "runtime/device/Host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
/// The `k`-th message from rank `from` to rank `to`.
std::vector<uint8_t> payload(uint32_t from, uint32_t to, uint32_t k) {
  static const size_t sizes[] = {
      0,     1, 7,       64,    4095, 4096,         65536,
      65537, 3, 1 << 20, 12345, 0,    (3 << 20) + 1};
  std::vector<uint8_t> bytes(sizes[(k + from + 2 * to) % std::size(sizes)]);
  uint32_t x = from * 7919 + to * 104729 + k * 31 + 1;
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>((x = x * 1664525 + 1013904223) >> 24);
  return bytes;
}

// All pairs of ranks exchange messages at the same time, in both directions.
// Each rank waits for its requests in another order than it posted them.
TEST_P(Conformance, MessagesArriveInOrder) {
  constexpr uint32_t kMessages = 13;
  onEachRank(GetParam(), [&](Rank &rank) {
    uint32_t self = rank.rank(), ranks = GetParam().ranks;
    ASSERT_EQ(rank.channels.ranks(), ranks);
    std::deque<Values<uint8_t>> out, in;
    std::vector<std::vector<uint8_t>> expected;
    std::vector<std::unique_ptr<Request>> requests;
    for (uint32_t k = 0; k < kMessages; ++k)
      for (uint32_t peer = 0; peer < ranks; ++peer) {
        if (peer == self)
          continue;
        out.emplace_back(rank, payload(self, peer, k));
        expected.push_back(payload(peer, self, k));
        in.emplace_back(rank, std::vector<uint8_t>(expected.back().size()));
        if ((self + k) % 2) // sometimes the send comes first
          requests.push_back(send(rank, peer, out.back()));
        requests.push_back(receive(rank, peer, in.back()));
        if ((self + k) % 2 == 0)
          requests.push_back(send(rank, peer, out.back()));
      }
    std::shuffle(requests.begin(), requests.end(), std::mt19937(self));
    for (std::unique_ptr<Request> &request : requests)
      rank.wait(std::move(request), kTimeout);
    for (size_t message = 0; message < in.size(); ++message)
      EXPECT_EQ(in[message].get(), expected[message]) << "message " << message;
  });
}

TEST_P(Conformance, ManySmallMessages) {
  onEachRank(GetParam(), [&](Rank &rank) {
    uint32_t ranks = GetParam().ranks;
    uint64_t messages = GetParam().deviceIsSlow() ? 200 : 2000;
    uint32_t next = (rank.rank() + 1) % ranks;
    uint32_t before = (rank.rank() + ranks - 1) % ranks;
    for (uint64_t k = 0; k < messages; ++k) {
      Values<uint64_t> out(rank, {k * 3 + rank.rank()}), in(rank, {0});
      auto sending = send(rank, next, out);
      auto receiving = receive(rank, before, in);
      rank.wait(std::move(receiving), kTimeout);
      rank.wait(std::move(sending), kTimeout);
      ASSERT_EQ(in.get()[0], k * 3 + before);
    }
  });
}

// A rank sends short messages to a rank that does not ask for them yet. Only
// some of these sends may end, so that the memory for messages is bounded.
TEST_P(HostConformance, ShortSendsWaitForTheirReceives) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kMessages = 1000, kMost = 128;
  onEachRank(GetParam(), [&](Rank &rank) {
    const uint32_t peer = rank.rank() ^ 1;
    if (peer >= GetParam().ranks)
      return;
    auto now = [] { return Clock::now().time_since_epoch().count(); };
    auto message = [](uint64_t k) {
      return std::vector<uint8_t>(1024, static_cast<uint8_t>(k));
    };
    if (rank.rank() > peer) {
      std::this_thread::sleep_for(200ms);
      Values<int64_t> begin(rank, {now()});
      for (uint64_t k = 0; k < kMessages; ++k) {
        Values<uint8_t> in(rank, std::vector<uint8_t>(1024));
        rank.wait(receive(rank, peer, in), kTimeout);
        ASSERT_EQ(in.get(), message(k));
      }
      rank.wait(send(rank, peer, begin), kTimeout);
      return;
    }
    std::vector<int64_t> ends;
    for (uint64_t k = 0; k < kMessages; ++k) {
      Values<uint8_t> out(rank, message(k));
      rank.wait(send(rank, peer, out), kTimeout);
      ends.push_back(now());
    }
    Values<int64_t> begin(rank, {0});
    rank.wait(receive(rank, peer, begin), kTimeout);
    EXPECT_LE(std::ranges::count_if(
                  ends, [&](int64_t end) { return end < begin.get()[0]; }),
              kMost);
  });
}

TEST_P(Conformance, LargeSendsCross) {
  onEachRank(GetParam(), [&](Rank &rank) {
    uint32_t peer = rank.rank() ^ 1;
    if (peer >= GetParam().ranks)
      return;
    std::vector<uint64_t> values(1 << 20);
    std::iota(values.begin(), values.end(), rank.rank());
    Values<uint64_t> out(rank, values);
    Values<uint64_t> in(rank, std::vector<uint64_t>(1 << 20));
    auto sending = send(rank, peer, out);
    auto receiving = receive(rank, peer, in);
    rank.wait(std::move(sending), kTimeout);
    rank.wait(std::move(receiving), kTimeout);
    values = in.get();
    EXPECT_EQ(values.front(), peer);
    EXPECT_EQ(values.back(), peer + values.size() - 1);
  });
}

// A value goes round a ring of ranks. Each rank copies it on its queue without
// waiting on the host. So the queue must run the copy only after the receive.
TEST_P(Conformance, AWaitOrdersItsQueue) {
  onEachRank(GetParam(), [&](Rank &rank) {
    uint32_t ranks = GetParam().ranks, self = rank.rank();
    Values<uint64_t> token(rank, {7}), copy(rank, {0});
    if (self > 0)
      rank.channels.wait(rank.queue, receive(rank, self - 1, token), kTimeout);
    rank.queue.copy(token.bytes(), copy.bytes());
    auto sending = rank.channels.postSend((self + 1) % ranks, copy.bytes(),
                                          rank.queue.record());
    if (self == 0)
      rank.channels.wait(rank.queue,
                         rank.channels.postReceive(ranks - 1, token.bytes(),
                                                   rank.queue.record()),
                         kTimeout);
    rank.wait(std::move(sending), kTimeout);
    EXPECT_EQ(token.get()[0], 7u);
  });
}

Block makeBlock(uint64_t size, uint32_t first) {
  Block block(static_cast<std::byte *>(std::aligned_alloc(64, size)));
  for (uint64_t i = 0; i < size; ++i)
    block.get()[i] = static_cast<std::byte>(first + i);
  return block;
}

// A ring of ranks, in which postSendBlock may pass a block of memory to the
// next rank without a copy. The rank that has a block writes to it. In some
// messages only one of the two ranks offers its block.
TEST_P(HostConformance, BlocksMayChangeHands) {
  constexpr uint64_t kSize = 1 << 16;
  constexpr uint32_t kRounds = 50;
  onEachRank(GetParam(), [&](Rank &rank) {
    Channels &channels = rank.channels;
    uint32_t next = (channels.rank() + 1) % GetParam().ranks;
    uint32_t before =
        (channels.rank() + GetParam().ranks - 1) % GetParam().ranks;
    Block out = makeBlock(kSize, 0), in = makeBlock(kSize, 0);
    for (uint32_t round = 0; round < kRounds; ++round) {
      for (uint64_t i = 0; i < kSize; ++i)
        out.get()[i] = static_cast<std::byte>(round * 7 + channels.rank() + i);
      auto receive = [&] {
        return round % 3 ? channels.postReceiveBlock(before, in, kSize)
                         : channels.postReceive(before, {in.get(), kSize});
      };
      auto send = [&] {
        return round % 5 ? channels.postSendBlock(next, out, kSize)
                         : channels.postSend(next, {out.get(), kSize});
      };
      std::unique_ptr<Request> sending, receiving;
      if ((round + channels.rank()) % 2) // sometimes the send comes first
        sending = send();
      receiving = receive();
      if (!sending)
        sending = send();
      channels.wait(hostQueue(), std::move(receiving), kTimeout);
      channels.wait(hostQueue(), std::move(sending), kTimeout);
      Block expected = makeBlock(kSize, round * 7 + before);
      ASSERT_EQ(std::memcmp(in.get(), expected.get(), kSize), 0) << round;
      ASSERT_NE(in.get(), out.get());
      std::swap(in, out);
    }
  });
}

// The message is so large that, over MPI, the receiving process must take part
// in the transfer.
TEST_P(HostConformance, MessagesArriveWhileARankComputes) {
  if (!hasAsynchronousProgress())
    GTEST_SKIP() << "needs progress threads";
  onEachRank(GetParam(), [&](Rank &rank) {
    Channels &channels = rank.channels;
    uint32_t next = (channels.rank() + 1) % GetParam().ranks;
    uint32_t before =
        (channels.rank() + GetParam().ranks - 1) % GetParam().ranks;
    std::vector<uint8_t> out(3 << 20, 7), in(out.size());
    auto receive = channels.postReceive(before, bytesOf(in));
    auto send = channels.postSend(next, bytesOf(out));
    EXPECT_TRUE(isWritten(channels, in.back()));
    channels.wait(hostQueue(), std::move(receive), kTimeout);
    channels.wait(hostQueue(), std::move(send), kTimeout);
    EXPECT_EQ(in, out);
  });
}

// The message is so large that, over MPI, the sending process must take part in
// the transfer, unless the kernel copies the message at once. When rank 0 drops
// its receive, a part of the message has arrived. The rest arrives after rank 0
// has freed the memory of the receive.
TEST_P(HostConformance, ADroppedReceiveWritesToNobodysMemory) {
  if (GetParam().ranks < 2)
    return;
  onEachRank(GetParam(), [&](Rank &rank) {
    Channels &channels = rank.channels;
    if (channels.rank() > 1)
      return;
    constexpr uint64_t kSize = 32 << 20;
    Block block = makeBlock(kSize, 7), word = makeBlock(64, 0);
    Bytes large(block.get(), kSize), small(word.get(), 64);
    auto waitAWhile = [&](std::unique_ptr<Request> request) {
      try {
        channels.wait(hostQueue(), std::move(request), 200ms);
      } catch (const WaitError &error) {
        EXPECT_EQ(error.reason, WaitError::Reason::TimedOut);
      }
    };
    if (channels.rank() == 0) {
      channels.wait(hostQueue(), channels.postSend(1, small), kTimeout);
      waitAWhile(channels.postReceive(1, large));
      block.reset();
    } else {
      auto send = channels.postSend(0, large);
      channels.wait(hostQueue(), channels.postReceive(0, small), kTimeout);
      std::this_thread::sleep_for(400ms);
      waitAWhile(std::move(send));
    }
    // During this all-reduce, the rest of the message moves if the channels
    // still can move it.
    channels.wait(hostQueue(),
                  channels.startAllReduce({0, {0, 1}}, ElementType::UInt64,
                                          {small}, small),
                  kTimeout);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Conformance, testing::ValuesIn(worlds()),
                         testing::PrintToStringParamName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HostConformance);
INSTANTIATE_TEST_SUITE_P(Worlds, HostConformance,
                         testing::ValuesIn(worldsOfHosts()),
                         testing::PrintToStringParamName());
} // namespace
