//===- ConformanceTest.cpp - What every channels must do -----------------===//
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
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
constexpr auto kTimeout = 30s;

class Conformance : public testing::TestWithParam<uint32_t> {};

template <typename T> ConstBytes bytesOf(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}
template <typename T> Bytes bytesOf(std::vector<T> &values) {
  return std::as_writable_bytes(std::span(values));
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
  onEachRank(GetParam(), [&](Channels &channels) {
    uint32_t self = channels.rank();
    ASSERT_EQ(channels.ranks(), GetParam());
    std::vector<std::vector<uint8_t>> out, in, expected;
    for (uint32_t k = 0; k < kMessages; ++k)
      for (uint32_t peer = 0; peer < GetParam(); ++peer) {
        if (peer == self)
          continue;
        out.push_back(payload(self, peer, k));
        expected.push_back(payload(peer, self, k));
        in.emplace_back(expected.back().size());
      }
    std::vector<std::unique_ptr<Request>> requests;
    size_t i = 0;
    for (uint32_t k = 0; k < kMessages; ++k)
      for (uint32_t peer = 0; peer < GetParam(); ++peer) {
        if (peer == self)
          continue;
        if ((self + k) % 2) // sometimes the send comes first
          requests.push_back(channels.postSend(peer, bytesOf(out[i])));
        requests.push_back(channels.postReceive(peer, bytesOf(in[i])));
        if ((self + k) % 2 == 0)
          requests.push_back(channels.postSend(peer, bytesOf(out[i])));
        ++i;
      }
    std::shuffle(requests.begin(), requests.end(), std::mt19937(self));
    for (std::unique_ptr<Request> &request : requests)
      channels.wait(hostQueue(), std::move(request), kTimeout);
    for (size_t message = 0; message < in.size(); ++message)
      EXPECT_EQ(in[message], expected[message]) << "message " << message;
  });
}

TEST_P(Conformance, ManySmallMessages) {
  constexpr uint64_t kMessages = 2000;
  onEachRank(GetParam(), [&](Channels &channels) {
    uint32_t next = (channels.rank() + 1) % GetParam();
    uint32_t before = (channels.rank() + GetParam() - 1) % GetParam();
    for (uint64_t k = 0; k < kMessages; ++k) {
      std::vector<uint64_t> out{k * 3 + channels.rank()}, in{0};
      auto send = channels.postSend(next, bytesOf(out));
      auto receive = channels.postReceive(before, bytesOf(in));
      channels.wait(hostQueue(), std::move(receive), kTimeout);
      channels.wait(hostQueue(), std::move(send), kTimeout);
      ASSERT_EQ(in[0], k * 3 + before);
    }
  });
}

TEST_P(Conformance, LargeSendsCross) {
  onEachRank(GetParam(), [&](Channels &channels) {
    uint32_t peer = channels.rank() ^ 1;
    if (peer >= GetParam())
      return;
    std::vector<uint64_t> out(1 << 20), in(1 << 20);
    std::iota(out.begin(), out.end(), channels.rank());
    auto send = channels.postSend(peer, bytesOf(out));
    auto receive = channels.postReceive(peer, bytesOf(in));
    channels.wait(hostQueue(), std::move(send), kTimeout);
    channels.wait(hostQueue(), std::move(receive), kTimeout);
    EXPECT_EQ(in.front(), peer);
    EXPECT_EQ(in.back(), peer + in.size() - 1);
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
TEST_P(Conformance, BlocksMayChangeHands) {
  constexpr uint64_t kSize = 1 << 16;
  constexpr uint32_t kRounds = 50;
  onEachRank(GetParam(), [&](Channels &channels) {
    uint32_t next = (channels.rank() + 1) % GetParam();
    uint32_t before = (channels.rank() + GetParam() - 1) % GetParam();
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
  std::vector<std::vector<T>> given;
  std::vector<T> sum;
  std::unique_ptr<Request> request;

  /// `inPlace`: the sum overwrites the rank's last contribution.
  void start(Channels &channels, const ReduceGroup &group, ElementType type,
             size_t elements, bool inPlace) {
    for (size_t i = 0; i < group.contributions.size(); ++i)
      if (group.contributions[i] == channels.rank())
        given.push_back(contribution<T>(i, elements));
    std::vector<ConstBytes> bytes;
    for (const std::vector<T> &values : given)
      bytes.push_back(bytesOf(values));
    sum.resize(inPlace ? 0 : elements);
    request = channels.startAllReduce(group, type, bytes,
                                      bytesOf(inPlace ? given.back() : sum));
  }
  const std::vector<T> &finish(Channels &channels, bool inPlace) {
    channels.wait(hostQueue(), std::move(request), kTimeout);
    return inPlace ? given.back() : sum;
  }
};

template <typename T> void reduceAll(uint32_t ranks, ElementType type) {
  onEachRank(ranks, [&](Channels &channels) {
    uint32_t id = 0;
    for (const std::vector<uint32_t> &contributions : groupsOf(ranks)) {
      ReduceGroup group{id++, contributions};
      if (!std::count(contributions.begin(), contributions.end(),
                      channels.rank()))
        continue;
      for (size_t elements : {0, 1, 2, 3, 1000, 8191, 70001})
        for (bool inPlace : {false, true}) {
          Sum<T> sum;
          sum.start(channels, group, type, elements, inPlace);
          const std::vector<T> &got = sum.finish(channels, inPlace);
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
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<uint32_t> all(GetParam());
    std::iota(all.begin(), all.end(), 0);
    auto elements = [](size_t i) { return 1 + i * 5003; };
    std::vector<Sum<double>> sums(kOutstanding);
    for (size_t i = 0; i < kOutstanding; ++i)
      sums[i].start(channels, {static_cast<uint32_t>(i % 3), all},
                    ElementType::Float64, elements(i), i % 2);
    std::vector<size_t> order(kOutstanding);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(channels.rank()));
    for (size_t i : order)
      EXPECT_EQ(sums[i].finish(channels, i % 2),
                serialFold<double>(GetParam(), elements(i)))
          << "all-reduce " << i;
  });
}

// Rank 0 waits for a message that comes only after the sum.
TEST_P(Conformance, AllReduceAdvancesInAnyWait) {
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<uint32_t> all(GetParam());
    std::iota(all.begin(), all.end(), 0);
    constexpr size_t kElements = 100000;
    Sum<float> sum;
    sum.start(channels, {5, all}, ElementType::Float32, kElements, false);
    std::vector<std::vector<uint8_t>> words(GetParam(),
                                            std::vector<uint8_t>(4));
    if (channels.rank() == 0)
      for (uint32_t peer = 1; peer < GetParam(); ++peer)
        channels.wait(hostQueue(),
                      channels.postReceive(peer, bytesOf(words[peer])),
                      kTimeout);
    EXPECT_EQ(sum.finish(channels, false),
              serialFold<float>(GetParam(), kElements));
    if (channels.rank() != 0)
      channels.wait(hostQueue(), channels.postSend(0, bytesOf(words[0])),
                    kTimeout);
  });
}

/// Whether `byte`, which the channels is to write, becomes other than 0 while
/// this rank stays out of the channels.
bool isWritten(Channels &channels, const uint8_t &byte) {
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
TEST_P(Conformance, MessagesArriveWhileARankComputes) {
  if (!oneRankSuffices())
    GTEST_SKIP() << "needs progress threads";
  onEachRank(GetParam(), [&](Channels &channels) {
    uint32_t next = (channels.rank() + 1) % GetParam();
    uint32_t before = (channels.rank() + GetParam() - 1) % GetParam();
    std::vector<uint8_t> out(3 << 20, 7), in(out.size());
    auto receive = channels.postReceive(before, bytesOf(in));
    auto send = channels.postSend(next, bytesOf(out));
    EXPECT_TRUE(isWritten(channels, in.back()));
    channels.wait(hostQueue(), std::move(receive), kTimeout);
    channels.wait(hostQueue(), std::move(send), kTimeout);
    EXPECT_EQ(in, out);
  });
}

TEST_P(Conformance, AllReducesAdvanceWhileARankComputes) {
  if (!oneRankSuffices())
    GTEST_SKIP() << "needs progress threads";
  onEachRank(GetParam(), [&](Channels &channels) {
    ReduceGroup all{3, std::vector<uint32_t>(GetParam())};
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
    EXPECT_EQ(first, std::vector<uint64_t>(one.size(), GetParam()));
    EXPECT_EQ(first, second);
  });
}

TEST_P(Conformance, WaitTimesOut) {
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<uint8_t> bytes(8);
    auto begin = std::chrono::steady_clock::now();
    uint32_t peer = (channels.rank() + 1) % GetParam();
    try {
      channels.wait(hostQueue(), channels.postReceive(peer, bytesOf(bytes)),
                    200ms);
      FAIL() << "received what nobody sent";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::TimedOut);
      EXPECT_NE(std::string(error.what()).find("rank " + std::to_string(peer)),
                std::string::npos)
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
TEST_P(Conformance, ADroppedReceiveWritesToNobodysMemory) {
  if (GetParam() < 2)
    GTEST_SKIP() << "needs two ranks";
  onEachRank(GetParam(), [&](Channels &channels) {
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
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<uint64_t> bytes(100);
    // One rank aborts; the others are in waits that nothing else would end.
    if (channels.rank() == GetParam() - 1) {
      std::this_thread::sleep_for(100ms);
      channels.abort("the test says so");
      channels.abort("a later reason");
    }
    std::vector<uint32_t> all(GetParam() + 1, channels.rank());
    std::iota(all.begin(), all.end() - 1, 0);
    try {
      if (channels.rank() % 2)
        channels.wait(hostQueue(), channels.postReceive(0, bytesOf(bytes)),
                      kTimeout);
      else if (channels.rank() + 1 == GetParam())
        channels.wait(hostQueue(), channels.postSend(0, bytesOf(bytes)),
                      kTimeout);
      else {
        std::vector<uint64_t> sum(100);
        // Nobody else starts it.
        ReduceGroup group{channels.rank(),
                          {0, GetParam() - 1, channels.rank()}};
        std::vector<ConstBytes> given(std::count(group.contributions.begin(),
                                                 group.contributions.end(),
                                                 channels.rank()),
                                      bytesOf(std::as_const(bytes)));
        channels.wait(hostQueue(),
                      channels.startAllReduce(group, ElementType::UInt64, given,
                                              bytesOf(sum)),
                      kTimeout);
      }
      FAIL() << "the wait of rank " << channels.rank() << " succeeded";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::Aborted);
      EXPECT_NE(std::string(error.what()).find("the test says so"),
                std::string::npos)
          << error.what();
    }
  });
}

TEST_P(Conformance, SizesMustAgree) {
  if (GetParam() < 2)
    GTEST_SKIP() << "needs two ranks";
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<uint8_t> bytes(channels.rank() == 0 ? 16 : 24);
    // Whether the sender learns of it is the channels's affair.
    if (channels.rank() == 0)
      try {
        channels.wait(hostQueue(), channels.postSend(1, bytesOf(bytes)),
                      kTimeout);
      } catch (const std::invalid_argument &) {
      }
    if (channels.rank() == 1) {
      EXPECT_THROW(channels.wait(hostQueue(),
                                 channels.postReceive(0, bytesOf(bytes)),
                                 kTimeout),
                   std::invalid_argument);
    }
  });
}

TEST_P(Conformance, AllReduceRefusesWhatDoesNotFit) {
  onEachRank(GetParam(), [&](Channels &channels) {
    std::vector<double> values(4), sum(4), shorter(3);
    uint32_t self = channels.rank();
    ConstBytes given = bytesOf(std::as_const(values));
    auto start = [&](std::vector<uint32_t> contributions,
                     std::vector<ConstBytes> bytes, Bytes result) {
      channels.startAllReduce({9, contributions}, ElementType::Float64, bytes,
                              result);
    };
    EXPECT_THROW(start({self + 1}, {}, bytesOf(sum)), std::invalid_argument);
    EXPECT_THROW(start({self}, {given, given}, bytesOf(sum)),
                 std::invalid_argument);
    EXPECT_THROW(start({self}, {given}, bytesOf(shorter)),
                 std::invalid_argument);
    EXPECT_THROW(start({self}, {given.first(12)}, bytesOf(sum).first(12)),
                 std::invalid_argument);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Conformance, testing::ValuesIn(worldSizes()),
                         testing::PrintToStringParamName());
} // namespace
