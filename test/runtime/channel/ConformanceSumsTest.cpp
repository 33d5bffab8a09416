//===- ConformanceSumsTest.cpp - Sums that all channels must compute ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/BFloat16.h"
#include "runtime/device/Host.h"
#include "test/runtime/channel/Conformance.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>
#include <random>

using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// Contribution `i` of an all-reduce: values whose sums need rounding, so they
/// depend on the order.
template <typename T> std::vector<T> contribution(size_t i, size_t elements) {
  std::mt19937_64 random(i * 1000003 + elements);
  std::vector<T> values(elements);
  for (T &value : values) {
    const uint64_t bits = random();
    if constexpr (std::is_integral_v<T>)
      value = bits;
    else
      value = T(std::ldexp(static_cast<Arithmetic<T>>(bits >> 40),
                           static_cast<int>((bits & 0xffff) % 40) - 20) *
                (bits >> 16 & 1 ? 1 : -1));
  }
  return values;
}

template <typename T>
std::vector<T> serialFold(size_t contributions, size_t elements) {
  std::vector<Arithmetic<T>> sum(elements);
  for (size_t i = 0; i < contributions; ++i) {
    std::vector<T> next = contribution<T>(i, elements);
    for (size_t j = 0; j < elements; ++j)
      sum[j] = i == 0 ? Arithmetic<T>(next[j]) : sum[j] + next[j];
  }
  std::vector<T> rounded;
  for (Arithmetic<T> each : sum)
    rounded.push_back(T(each));
  return rounded;
}

/// Lists of contributors for all-reduces of a world. Some lists contain a rank
/// twice, and some do not contain all ranks.
std::vector<std::vector<uint32_t>> groupsOf(uint32_t ranks) {
  std::vector<uint32_t> ascending(ranks);
  std::iota(ascending.begin(), ascending.end(), 0);
  std::vector<uint32_t> descending(ascending.rbegin(), ascending.rend());
  std::vector<uint32_t> twice = ascending;
  twice.insert(twice.end(), descending.begin(), descending.end());
  std::vector<uint32_t> some{ranks - 1, 0, ranks - 1};
  return {ascending, descending, twice, some, {ranks / 2}};
}

/// One all-reduce of this rank, from its start to its result.
template <typename T> struct Sum {
  std::deque<Values<T>> given;
  std::optional<Values<T>> sum;
  std::unique_ptr<Request> request;

  /// If `inPlace`, the sum overwrites the rank's last contribution.
  void start(Rank &rank, const ReduceGroup &group, ElementType type,
             size_t elements, bool inPlace) {
    std::vector<ConstBytes> bytes;
    for (size_t i = 0; i < group.contributors.size(); ++i)
      if (group.contributors[i] == rank.rank()) {
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
    for (const std::vector<uint32_t> &contributors : groupsOf(world.ranks)) {
      ReduceGroup group{id++, contributors};
      if (!std::count(contributors.begin(), contributors.end(), rank.rank()))
        continue;
      for (size_t elements : {0, 1, 2, 3, 1000, 8191, 70001}) {
        const std::vector<T> expected =
            serialFold<T>(contributors.size(), elements);
        for (bool inPlace : {false, true}) {
          Sum<T> sum;
          sum.start(rank, group, type, elements, inPlace);
          std::vector<T> got = sum.finish(rank);
          ASSERT_EQ(got.size(), expected.size());
          ConstBytes gotBytes = bytesOf(got), expectedBytes = bytesOf(expected);
          EXPECT_TRUE(std::ranges::equal(gotBytes, expectedBytes))
              << elements << " elements, group " << group.id;
        }
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
TEST_P(Conformance, AllReduceBFloat16IsTheSerialFoldRoundedOnce) {
  reduceAll<BFloat16>(GetParam(), ElementType::BFloat16);
}
TEST_P(Conformance, AllReduceUInt64IsTheSerialFold) {
  reduceAll<uint64_t>(GetParam(), ElementType::UInt64);
}

// All 12 all-reduces are in progress at the same time, several of each group.
// Each rank waits for them in a different order.
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

// Each other rank sends rank 0 a message only after the all-reduce has
// completed at this rank. Rank 0 waits for these messages before it waits for
// the all-reduce. So the all-reduce must advance while rank 0 waits for a
// message.
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

TEST_P(HostConformance, AllReducesAdvanceWhileARankComputes) {
  if (!hasAsynchronousProgress())
    GTEST_SKIP() << "needs progress threads";
  onEachRank(GetParam(), [&](Rank &rank) {
    Channels &channels = rank.channels;
    ReduceGroup all{3, std::vector<uint32_t>(GetParam().ranks)};
    std::iota(all.contributors.begin(), all.contributors.end(), 0);
    std::vector<uint64_t> one(300000, 1), first(one.size()), second(one.size());
    auto start = [&](std::vector<uint64_t> &sum) {
      return channels.startAllReduce(all, ElementType::UInt64,
                                     {bytesOf(std::as_const(one))},
                                     bytesOf(sum));
    };
    auto a = start(first), b = start(second);
    // All ranks but rank 0 get the last chunk of the sum only in the second
    // exchange of messages.
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
} // namespace
