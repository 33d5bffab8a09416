//===- ConformanceTest.cpp - What all channels must do --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Host.h"
#include "runtime/system/Deadline.h"
#include "test/runtime/channel/World.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
constexpr auto kTimeout = 30s;

class Conformance : public testing::TestWithParam<World> {};
/// What only channels of host memory promise.
class HostConformance : public testing::TestWithParam<World> {};

template <typename T> ConstBytes bytesOf(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}
template <typename T> Bytes bytesOf(std::vector<T> &values) {
  return std::as_writable_bytes(std::span(values));
}

/// Sends or receives values when they are there.
template <typename T>
std::unique_ptr<Request> send(Rank &rank, uint32_t to, Values<T> &values) {
  return rank.channels.postSend(to, values.bytes(), values.after());
}
template <typename T>
std::unique_ptr<Request> receive(Rank &rank, uint32_t from, Values<T> &values) {
  return rank.channels.postReceive(from, values.bytes(), values.after());
}

/// What rank `from` sends to rank `to` as its `k`-th message.
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

// Every pair at once, both ways; waits in an order unlike that of the posts.
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
    uint64_t messages = GetParam().kind == World::Simulated ? 200 : 2000;
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

// What is sent on is what was received.
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

// A ring in which every block wanders on, and is written by who has it; some
// messages are of one end's block only.
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
        return round % 3 ? channels.takeOver(before, in, kSize)
                         : channels.postReceive(before, {in.get(), kSize});
      };
      auto send = [&] {
        return round % 5 ? channels.handOver(next, out, kSize)
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

/// Contribution `i` of an all-reduce: values that do not add exactly.
template <typename T> std::vector<T> contribution(size_t i, size_t elements) {
  std::mt19937_64 random(i * 1000003 + elements);
  std::vector<T> values(elements);
  for (T &value : values)
    if constexpr (std::is_integral_v<T>)
      value = random();
    else
      value = std::ldexp(static_cast<T>(random() >> 40),
                         static_cast<int>(random() % 40) - 20) *
              (random() % 2 ? 1 : -1);
  return values;
}

template <typename T>
std::vector<T> serialFold(size_t contributions, size_t elements) {
  std::vector<T> sum = contribution<T>(0, elements);
  for (size_t i = 1; i < contributions; ++i) {
    std::vector<T> next = contribution<T>(i, elements);
    for (size_t j = 0; j < elements; ++j)
      sum[j] += next[j];
  }
  return sum;
}

/// Orders in which the ranks of a world may contribute.
std::vector<std::vector<uint32_t>> groupsOf(uint32_t ranks) {
  std::vector<uint32_t> ascending(ranks);
  std::iota(ascending.begin(), ascending.end(), 0);
  std::vector<uint32_t> descending(ascending.rbegin(), ascending.rend());
  std::vector<uint32_t> twice = ascending;
  twice.insert(twice.end(), descending.begin(), descending.end());
  std::vector<uint32_t> some{ranks - 1, 0, ranks - 1};
  return {ascending, descending, twice, some, {ranks / 2}};
}

/// One all-reduce of this rank, from start to result.
template <typename T> struct Sum {
  std::deque<Values<T>> given;
  std::optional<Values<T>> sum;
  std::unique_ptr<Request> request;

  /// `inPlace`: the sum overwrites the rank's last contribution.
  void start(Rank &rank, const ReduceGroup &group, ElementType type,
             size_t elements, bool inPlace) {
    std::vector<ConstBytes> bytes;
    for (size_t i = 0; i < group.contributions.size(); ++i)
      if (group.contributions[i] == rank.rank()) {
        given.emplace_back(rank, contribution<T>(i, elements));
        bytes.push_back(given.back().bytes());
      }
    if (!inPlace)
      sum.emplace(rank, std::vector<T>(elements));
    request = rank.channels.startAllReduce(
        group, type, bytes, inPlace ? given.back().bytes() : sum->bytes(),
        rank.queue.record());
  }
  std::vector<T> finish(Rank &rank) {
    rank.wait(std::move(request), kTimeout);
    return sum ? sum->get() : given.back().get();
  }
};

template <typename T> void reduceAll(const World &world, ElementType type) {
  onEachRank(world, [&](Rank &rank) {
    uint32_t id = 0;
    for (const std::vector<uint32_t> &contributions : groupsOf(world.ranks)) {
      ReduceGroup group{id++, contributions};
      if (!std::count(contributions.begin(), contributions.end(), rank.rank()))
        continue;
      for (size_t elements : {0, 1, 2, 3, 1000, 8191, 70001})
        for (bool inPlace : {false, true}) {
          Sum<T> sum;
          sum.start(rank, group, type, elements, inPlace);
          std::vector<T> got = sum.finish(rank);
          std::vector<T> expected =
              serialFold<T>(contributions.size(), elements);
          ASSERT_EQ(got.size(), expected.size());
          ConstBytes gotBytes = bytesOf(got), expectedBytes = bytesOf(expected);
          EXPECT_TRUE(std::ranges::equal(gotBytes, expectedBytes))
              << elements << " elements, group " << group.id;
        }
    }
  });
}

TEST_P(Conformance, AllReduceFloat32IsTheSerialFold) {
  reduceAll<float>(GetParam(), ElementType::Float32);
}
TEST_P(Conformance, AllReduceFloat64IsTheSerialFold) {
  reduceAll<double>(GetParam(), ElementType::Float64);
}
TEST_P(Conformance, AllReduceUInt64IsTheSerialFold) {
  reduceAll<uint64_t>(GetParam(), ElementType::UInt64);
}

// All in flight together, some of one group; each rank waits in its own order.
TEST_P(Conformance, AllReducesAreWaitedForInAnyOrder) {
  constexpr size_t kOutstanding = 12;
  onEachRank(GetParam(), [&](Rank &rank) {
    std::vector<uint32_t> all(GetParam().ranks);
    std::iota(all.begin(), all.end(), 0);
    auto elements = [](size_t i) { return 1 + i * 5003; };
    std::vector<Sum<double>> sums(kOutstanding);
    for (size_t i = 0; i < kOutstanding; ++i)
      sums[i].start(rank, {static_cast<uint32_t>(i % 3), all},
                    ElementType::Float64, elements(i), i % 2);
    std::vector<size_t> order(kOutstanding);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(rank.rank()));
    for (size_t i : order)
      EXPECT_EQ(sums[i].finish(rank),
                serialFold<double>(GetParam().ranks, elements(i)))
          << "all-reduce " << i;
  });
}

// Rank 0 waits for a message that comes only after the sum.
TEST_P(Conformance, AllReduceAdvancesInAnyWait) {
  onEachRank(GetParam(), [&](Rank &rank) {
    std::vector<uint32_t> all(GetParam().ranks);
    std::iota(all.begin(), all.end(), 0);
    constexpr size_t kElements = 100000;
    Sum<float> sum;
    sum.start(rank, {5, all}, ElementType::Float32, kElements, false);
    Values<uint8_t> word(rank, std::vector<uint8_t>(4));
    if (rank.rank() == 0)
      for (uint32_t peer = 1; peer < GetParam().ranks; ++peer)
        rank.wait(receive(rank, peer, word), kTimeout);
    EXPECT_EQ(sum.finish(rank), serialFold<float>(GetParam().ranks, kElements));
    if (rank.rank() != 0)
      rank.wait(send(rank, 0, word), kTimeout);
  });
}

/// Whether `byte`, which the channels are to write, becomes other than 0 while
/// this rank stays out of the channels: it looks without asking them.
__attribute__((no_sanitize("thread"))) bool isWritten(Channels &channels,
                                                      const uint8_t &byte) {
  channels.computing();
  Deadline deadline(kTimeout);
  while (!deadline.passed()) {
    if (static_cast<const volatile uint8_t &>(byte) != 0)
      return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// Of a size that a receiver over MPI must help to move.
TEST_P(HostConformance, MessagesArriveWhileARankComputes) {
  if (!oneRankSuffices())
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

TEST_P(HostConformance, AllReducesAdvanceWhileARankComputes) {
  if (!oneRankSuffices())
    GTEST_SKIP() << "needs progress threads";
  onEachRank(GetParam(), [&](Rank &rank) {
    Channels &channels = rank.channels;
    ReduceGroup all{3, std::vector<uint32_t>(GetParam().ranks)};
    std::iota(all.contributions.begin(), all.contributions.end(), 0);
    std::vector<uint64_t> one(300000, 1), first(one.size()), second(one.size());
    auto start = [&](std::vector<uint64_t> &sum) {
      return channels.startAllReduce(all, ElementType::UInt64,
                                     {bytesOf(std::as_const(one))},
                                     bytesOf(sum));
    };
    auto a = start(first), b = start(second);
    // The last chunk of every other member comes with the second exchange.
    if (channels.rank() != 0) {
      EXPECT_TRUE(
          isWritten(channels, reinterpret_cast<uint8_t &>(second.back())));
    }
    channels.wait(hostQueue(), std::move(b), kTimeout);
    channels.wait(hostQueue(), std::move(a), kTimeout);
    EXPECT_EQ(first, std::vector<uint64_t>(one.size(), GetParam().ranks));
    EXPECT_EQ(first, second);
  });
}

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
      // Elsewhere the host waits for its own device.
      std::string awaited =
          "rank " + std::to_string(GetParam().hostsMeet() ? peer : rank.rank());
      EXPECT_NE(std::string(error.what()).find(awaited), std::string::npos)
          << error.what();
    }
    auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, 200ms);
    EXPECT_LT(took, 3s);
  });
}

// Of a size that a sender over MPI must help to move, where the kernel does not
// copy it at once: then the message is here in part when the receive is
// dropped, and the rest comes when its memory is gone.
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
    // Now the message moves on, if it can.
    channels.wait(hostQueue(),
                  channels.startAllReduce({0, {0, 1}}, ElementType::UInt64,
                                          {small}, small),
                  kTimeout);
  });
}

TEST_P(Conformance, AbortEndsEveryWait) {
  onEachRank(GetParam(), [&](Rank &rank) {
    Values<uint64_t> values(rank, std::vector<uint64_t>(100));
    Values<uint64_t> sum(rank, std::vector<uint64_t>(100));
    uint32_t self = rank.rank(), last = GetParam().ranks - 1;
    // While the rank is in a wait that nothing else would end.
    std::thread other([&] {
      std::this_thread::sleep_for(100ms);
      rank.channels.abort("the test says so");
      rank.channels.abort("a later reason");
    });
    try {
      if (self % 2 || self == last)
        rank.wait(receive(rank, 0, values), kTimeout);
      else {
        // Nobody else starts it.
        ReduceGroup group{self, {0, last, self}};
        std::vector<ConstBytes> given(std::count(group.contributions.begin(),
                                                 group.contributions.end(),
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
    // Whether the sender learns of it is the channels' affair.
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
    auto start = [&](std::vector<uint32_t> contributions,
                     std::vector<ConstBytes> bytes, Bytes result) {
      rank.channels.startAllReduce({9, contributions}, ElementType::Float64,
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

INSTANTIATE_TEST_SUITE_P(Worlds, Conformance, testing::ValuesIn(worlds()),
                         testing::PrintToStringParamName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HostConformance);
INSTANTIATE_TEST_SUITE_P(Worlds, HostConformance,
                         testing::ValuesIn(worldsOfHosts()),
                         testing::PrintToStringParamName());
} // namespace
