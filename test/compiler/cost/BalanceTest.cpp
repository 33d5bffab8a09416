//===- BalanceTest.cpp - Balanced ranges of layers ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/Balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace chimera::cost {
namespace {

using Costs = std::vector<const PrefixSums *>;

/// Cuts the layers into consecutive ranges with a simple dynamic program. It
/// tries every possible end of every range. Balance.cpp tries only the ends in
/// its windows. After k ranges, best[i] is the least possible time of the
/// longest range, if these ranges cover the first i layers. If several cuts are
/// equally good, the function chooses by the rule in Balance.cpp.
std::vector<int32_t> plainCuts(const Costs &costs) {
  auto ranges = static_cast<int32_t>(costs.size());
  auto layers = static_cast<int32_t>(costs[0]->size()) - 1;
  std::vector<int64_t> best = *costs[0];
  std::vector<std::vector<int32_t>> from(ranges,
                                         std::vector<int32_t>(layers + 1));
  for (int32_t k = 1; k < ranges; ++k) {
    std::vector<int64_t> next(layers + 1, INT64_MAX);
    for (int32_t i = k + 1; i <= layers; ++i) {
      auto time = [&](int32_t j) { return (*costs[k])[i] - (*costs[k])[j]; };
      // Positions where the last range may start: with any later start, the
      // longest of the ranges before it would take longer.
      std::vector<int32_t> begins;
      int64_t least = INT64_MAX;
      for (int32_t j = i - 1; j >= k; --j)
        if (best[j] <= least) {
          least = best[j];
          begins.insert(begins.begin(), j);
        }
      size_t c = 0;
      while (c + 1 < begins.size() && best[begins[c]] < time(begins[c]))
        ++c;
      int64_t longest = std::max(best[begins[c]], time(begins[c]));
      if (c > 0 && time(begins[c - 1]) <= longest)
        longest = time(begins[--c]);
      next[i] = longest;
      from[k][i] = begins[c];
    }
    best = next;
  }
  std::vector<int32_t> ends(ranges, layers);
  for (int32_t k = ranges - 1; k > 0; --k)
    ends[k - 1] = from[k][ends[k]];
  return ends;
}

/// The dynamic program of an earlier version. It requires that a layer takes
/// the same time in each stage. For such layers, balancedCuts must still return
/// the same cuts.
std::vector<int32_t> formerCuts(const PrefixSums &prefix, int32_t ranges) {
  auto layers = static_cast<int32_t>(prefix.size()) - 1;
  std::vector<int64_t> before = prefix, best(layers + 1);
  std::vector<std::vector<int32_t>> from(ranges,
                                         std::vector<int32_t>(layers + 1));
  for (int32_t k = 1; k < ranges; ++k) {
    int32_t j = k;
    for (int32_t i = k + 1; i <= layers; ++i) {
      while (j + 1 < i && before[j] < prefix[i] - prefix[j])
        ++j;
      best[i] = std::max(before[j], prefix[i] - prefix[j]);
      from[k][i] = j;
      if (j > k && prefix[i] - prefix[j - 1] <= best[i]) {
        best[i] = prefix[i] - prefix[j - 1];
        from[k][i] = j - 1;
      }
    }
    before = best;
  }
  std::vector<int32_t> ends(ranges, layers);
  for (int32_t k = ranges - 1; k > 0; --k)
    ends[k - 1] = from[k][ends[k]];
  return ends;
}

/// The least possible time of the longest range, by a dynamic program that
/// tries every end of every range.
int64_t leastOfBalances(const Costs &costs) {
  std::vector<int64_t> best = *costs[0];
  best[0] = INT64_MAX;
  for (size_t k = 1; k < costs.size(); ++k) {
    std::vector<int64_t> next(best.size(), INT64_MAX);
    for (size_t i = 0; i < best.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        next[i] = std::min(next[i],
                           std::max(best[j], (*costs[k])[i] - (*costs[k])[j]));
    best = next;
  }
  return best.back();
}

int64_t longestOf(const Costs &costs, const std::vector<int32_t> &ends) {
  int64_t most = 0;
  for (size_t k = 0; k < ends.size(); ++k)
    most = std::max(most, (*costs[k])[ends[k]] -
                              (*costs[k])[k == 0 ? 0 : ends[k - 1]]);
  return most;
}

/// The times of random layers. There are several kinds: equal times, random
/// times, times that may be 0, and times of which a few are far longer than the
/// others.
class RandomLayers {
public:
  explicit RandomLayers(uint32_t seed) : random(seed) {
    auto layers = static_cast<int32_t>(1 + upTo(40));
    int64_t kind = upTo(5), same = 1 + upTo(9);
    for (int32_t i = 0; i < layers; ++i) {
      int64_t time = kind < 2 ? same : upTo(kind == 2 ? 3 : 50);
      if (kind % 2 == 1 && upTo(10) == 0)
        time *= 1 + upTo(20);
      once.push_back(once.back() + time);
      again.push_back(again.back() + time + (kind == 4 ? upTo(20) : time / 2));
    }
  }

  int64_t upTo(int64_t most) { return static_cast<int64_t>(random() % most); }
  int32_t size() const { return static_cast<int32_t>(once.size()) - 1; }

  std::mt19937 random;
  PrefixSums once = {0}, again = {0};
};

TEST(BalancedCuts, EqualThePlainDynamicProgram) {
  int mixed = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomLayers layers(seed);
    auto ranges = static_cast<int32_t>(1 + layers.upTo(layers.size()));
    Costs costs(ranges, &layers.once);
    int64_t often = layers.upTo(4);
    for (const PrefixSums *&cost : costs)
      if (layers.upTo(4) < often)
        cost = &layers.again;
    mixed += often > 0;
    std::vector<int32_t> ends = balancedCuts(costs);
    ASSERT_EQ(ends, plainCuts(costs)) << "seed " << seed;
    ASSERT_EQ(longestOf(costs, ends), leastOfBalances(costs))
        << "seed " << seed;
    ASSERT_TRUE(std::ranges::is_sorted(ends, std::ranges::less_equal()));
  }
  EXPECT_GT(mixed, 2000);
}

TEST(BalancedCuts, DoNotChangeIfAllStagesAreEqual) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomLayers layers(seed);
    auto ranges = static_cast<int32_t>(1 + layers.upTo(layers.size()));
    for (const PrefixSums *prefix : {&layers.once, &layers.again})
      ASSERT_EQ(balancedCuts(Costs(ranges, prefix)),
                formerCuts(*prefix, ranges))
          << "seed " << seed;
  }
}

TEST(BalancedCuts, LeaveALongLayerToAStageThatIsNotRecomputed) {
  // The second stage recomputes, and the others do not. In the first stage, the
  // first two layers take 101, with the long second one. In the second stage,
  // the long layer alone would take 150.
  PrefixSums once = {0, 1, 101, 102, 103}, again = {0, 2, 152, 154, 156};
  Costs costs = {&once, &again, &once};
  EXPECT_EQ(balancedCuts(costs), (std::vector<int32_t>{2, 3, 4}));
}

TEST(BalancedCuts, CutThousandsOfLayers) {
  PrefixSums once = {0}, again = {0};
  std::mt19937 random(1);
  for (int32_t i = 0; i < 5000; ++i) {
    auto time = static_cast<int64_t>(1000000 + random() % 1000000);
    once.push_back(once.back() + time);
    again.push_back(again.back() + time + time / 3);
  }
  for (int32_t ranges : {64, 2048, 4096}) {
    Costs costs(ranges, &once);
    EXPECT_EQ(balancedCuts(costs), formerCuts(once, ranges));
    for (int32_t k = 0; k < ranges; k += 3)
      costs[k] = &again;
    std::vector<int32_t> ends = balancedCuts(costs);
    EXPECT_EQ(ends.back(), 5000);
    EXPECT_TRUE(std::ranges::is_sorted(ends, std::ranges::less_equal()));
  }
}

} // namespace
} // namespace chimera::cost
