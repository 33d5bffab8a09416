//===- AllReduceTest.cpp - Compares MPI's all-reduce with the ordered one -===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Session.h"
#include "runtime/device/BFloat16.h"
#include "runtime/device/Fold.h"
#include "runtime/device/Host.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace chimera::runtime;

namespace {
constexpr std::chrono::seconds kTimeout(100);

MpiSession &session() {
  static const std::unique_ptr<MpiSession> session =
      startMpi(MpiThreads::Multiple);
  return *session;
}

std::vector<uint32_t> allRanks() {
  std::vector<uint32_t> ranks(session().ranks());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Three groups: all ranks, all ranks twice (the second time in reverse order),
/// and the first and the last rank.
std::vector<ReduceGroup> groups() {
  std::vector<uint32_t> all = allRanks(), twice = all;
  twice.insert(twice.end(), all.rbegin(), all.rend());
  return {{0, all}, {1, twice}, {2, {0, session().ranks() - 1}}};
}

/// Contribution `i` of a group. All ranks get the same values.
template <typename T> std::vector<T> contribution(size_t i, size_t elements) {
  std::mt19937_64 random(i * 1000003 + elements);
  std::vector<T> values(elements);
  for (T &value : values)
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(random());
    else
      value = T(std::ldexp(static_cast<Arithmetic<T>>(random() >> 40),
                           static_cast<int>(random() % 40) - 20) *
                (random() % 2 ? 1 : -1));
  return values;
}

/// An all-reduce that this rank has started. The elements are added as `type`.
/// In memory, a contribution is a vector of `T`.
template <typename T> struct Summing {
  std::vector<std::vector<T>> given;
  std::vector<T> sum; ///< unused if in place
  std::unique_ptr<Request> request;

  Summing(Channels &channels, const ReduceGroup &group, ElementType type,
          size_t elements, bool inPlace = false)
      : sum(inPlace ? 0 : elements) {
    std::vector<ConstBytes> bytes;
    for (size_t i = 0; i < group.contributors.size(); ++i)
      if (group.contributors[i] == channels.rank())
        given.push_back(contribution<T>(i, elements));
    for (const std::vector<T> &values : given)
      bytes.push_back(std::as_bytes(std::span(values)));
    request = channels.startAllReduce(
        group, type, bytes,
        std::as_writable_bytes(std::span(inPlace ? given.back() : sum)));
  }

  const std::vector<T> &result() const {
    return sum.empty() ? given.back() : sum;
  }
};

/// Computes the sum of each group and several sizes in two ways: with chimera's
/// ordered all-reduce and with MPI's own. Calls `compare` with both. Tests
/// MPI's own with and without a progress thread.
template <typename T, typename Compare>
void compareSums(ElementType type, Compare compare) {
  for (bool progress : {false, true}) {
    auto ordered = session().makeChannels();
    auto own = session().makeChannels(
        {.progressThread = progress, .transportAllReduce = true});
    own->prepare({.pairs = {}, .groups = groups()});
    for (const ReduceGroup &group : groups()) {
      std::vector<uint32_t> members = membersOf(group);
      if (!std::count(members.begin(), members.end(), own->rank()))
        continue;
      for (size_t elements : {1, 3, 1000, 70001})
        for (bool inPlace : {false, true}) {
          // Two sums of one group are in progress. The rank waits for the
          // second one first. The second one sometimes has no elements.
          Summing<T> first(*own, group, type, elements, inPlace),
              second(*own, group, type, elements / 2, !inPlace),
              expected(*ordered, group, type, elements);
          own->wait(hostQueue(), std::move(second.request), kTimeout);
          own->wait(hostQueue(), std::move(first.request), kTimeout);
          ordered->wait(hostQueue(), std::move(expected.request), kTimeout);
          compare(expected.result(), first.result(), group);
        }
    }
  }
}

/// The distance from 1 to the next number.
template <typename T> constexpr double kEpsilon = 0x1p-7; // of BFloat16
template <> constexpr double kEpsilon<float> = 0x1p-23;
template <> constexpr double kEpsilon<double> = 0x1p-52;

template <typename T>
void expectNear(const std::vector<T> &expected, const std::vector<T> &got,
                const ReduceGroup &group) {
  std::vector<double> magnitude(expected.size());
  size_t count = group.contributors.size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<T> one = contribution<T>(i, expected.size());
    for (size_t j = 0; j < one.size(); ++j)
      magnitude[j] += std::abs(static_cast<double>(one[j]));
  }
  for (size_t j = 0; j < expected.size(); ++j)
    ASSERT_LE(std::abs(static_cast<double>(expected[j]) -
                       static_cast<double>(got[j])),
              static_cast<double>(2 * count) * kEpsilon<T> * magnitude[j])
        << "element " << j << " of group " << group.id;
}

TEST(OwnAllReduce, Float32DiffersByRoundingAtMost) {
  compareSums<float>(ElementType::Float32, expectNear<float>);
}

TEST(OwnAllReduce, Float64DiffersByRoundingAtMost) {
  compareSums<double>(ElementType::Float64, expectNear<double>);
}

TEST(OwnAllReduce, BFloat16DiffersByRoundingAtMost) {
  compareSums<BFloat16>(ElementType::BFloat16, expectNear<BFloat16>);
}

TEST(OwnAllReduce, IntegersAreEqual) {
  compareSums<uint64_t>(ElementType::UInt64,
                        [](const auto &expected, const auto &got,
                           const auto &) { EXPECT_EQ(expected, got); });
}

// Sums arrays of bytes as 64-bit integers. The number of bytes need not be a
// multiple of 8.
TEST(OwnAllReduce, BytesBehindTheLastIntegerAreEqual) {
  compareSums<uint8_t>(ElementType::UInt64,
                       [](const auto &expected, const auto &got, const auto &) {
                         EXPECT_EQ(expected, got);
                       });
}

// A barrier uses a group that was not passed to Channels::prepare. So channels
// of every kind must sum over such groups.
TEST(OwnAllReduce, GroupsThatWereNotPreparedAreSummed) {
  auto own = session().makeChannels({.transportAllReduce = true});
  own->prepare({.pairs = {}, .groups = groups()});
  ReduceGroup other{9, allRanks()};
  Summing<double> sum(*own, other, ElementType::Float64, 100);
  own->wait(hostQueue(), std::move(sum.request), kTimeout);
  std::vector<double> expected(100);
  for (size_t i = 0; i < other.contributors.size(); ++i)
    for (size_t j = 0; j < expected.size(); ++j)
      expected[j] += contribution<double>(i, 100)[j];
  EXPECT_EQ(sum.sum, expected);
}
} // namespace
