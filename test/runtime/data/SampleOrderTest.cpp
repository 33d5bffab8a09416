//===- SampleOrderTest.cpp - The order of training samples ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/SampleOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace chimera::runtime {
namespace {

/// (chi² - degrees of freedom) / standard deviation: about normal with mean 0
/// and deviation 1 if `counts` were drawn uniformly.
double deviation(const std::vector<double> &counts) {
  double total = 0;
  for (double count : counts)
    total += count;
  const double expected = total / static_cast<double>(counts.size());
  double chiSquare = 0;
  for (double count : counts)
    chiSquare += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chiSquare - freedom) / std::sqrt(2 * freedom);
}

std::vector<uint64_t> permutation(uint64_t count, uint64_t key) {
  std::vector<uint64_t> all(count);
  for (uint64_t i = 0; i < count; ++i)
    all[i] = permute(i, count, key);
  return all;
}

TEST(PermuteTest, isAPermutation) {
  for (uint64_t count :
       {1, 2, 3, 7, 63, 64, 65, 127, 128, 129, 1000, 4096, 5000}) {
    std::vector<uint64_t> all = permutation(count, 7);
    std::ranges::sort(all);
    for (uint64_t i = 0; i < count; ++i)
      ASSERT_EQ(all[i], i) << count;
  }
}

TEST(PermuteTest, worksForAllSizes) {
  for (int bits = 0; bits < 64; ++bits) {
    const uint64_t count = uint64_t{1} << bits;
    EXPECT_LT(permute(count / 2, count, 1), count);
    EXPECT_LT(permute(count - 1, count, 1), count);
    EXPECT_LT(permute(count, count + 1, 1), count + 1);
  }
  EXPECT_LT(permute(5, UINT64_MAX, 1), UINT64_MAX);
  EXPECT_THROW(permute(5, 5, 1), std::invalid_argument);
  EXPECT_THROW(permute(0, 0, 1), std::invalid_argument);
}

/// With small counts, each permutation is equally frequent.
TEST(PermuteTest, givesAllPermutationsEquallyOften) {
  for (uint64_t count : {2, 3, 4, 5}) {
    std::map<std::vector<uint64_t>, double> frequency;
    uint64_t factorial = 1;
    for (uint64_t i = 2; i <= count; ++i)
      factorial *= i;
    for (uint64_t key = 0; key < 400 * factorial; ++key)
      ++frequency[permutation(count, key * 0x9E3779B97F4A7C15)];
    ASSERT_EQ(frequency.size(), factorial);
    std::vector<double> counts;
    for (const auto &[which, times] : frequency)
      counts.push_back(times);
    EXPECT_LT(std::abs(deviation(counts)), 4) << count;
  }
}

/// With larger counts, each pair of neighbours is equally frequent. So is each
/// sample in each place.
TEST(PermuteTest, givesAllPlacesAndNeighboursEquallyOften) {
  for (uint64_t count : {60, 64, 70, 130}) {
    std::vector<double> places(count * count), neighbours(count * count);
    for (uint64_t key = 0; key < 20 * count; ++key) {
      const std::vector<uint64_t> all =
          permutation(count, key * 0xD1342543DE82EF95 + 11);
      for (uint64_t i = 0; i < count; ++i) {
        ++places[i * count + all[i]];
        // The distance from a sample to the next one; never 0.
        const uint64_t next = all[(i + 1) % count];
        ++neighbours[i * count + (next + count - all[i]) % count];
      }
    }
    std::erase(neighbours, 0.0);
    EXPECT_EQ(neighbours.size(), count * (count - 1));
    EXPECT_LT(std::abs(deviation(places)), 4) << count;
    EXPECT_LT(std::abs(deviation(neighbours)), 4) << count;
  }
}

/// The samples of the steps [first, end).
std::vector<uint64_t> samplesOf(const SampleOrder &order, uint64_t first,
                                uint64_t end, uint64_t batch) {
  std::vector<uint64_t> samples;
  for (uint64_t step = first; step < end; ++step)
    for (uint64_t i = 0; i < batch; ++i)
      samples.push_back(order.sampleAt(step, i).sample);
  return samples;
}

TEST(SampleOrderTest, dropsTheRestOfAnEpoch) {
  const SampleOrder order(23, 5, LastBatch::Drop, 1);
  EXPECT_EQ(order.stepsOf(1), 4u);
  EXPECT_EQ(order.stepsOf(3), 12u);
  std::set<uint64_t> left;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const auto samples = samplesOf(order, 4 * epoch, 4 * epoch + 4, 5);
    const std::set<uint64_t> once(samples.begin(), samples.end());
    EXPECT_EQ(once.size(), 20u); // none twice
    EXPECT_LT(*once.rbegin(), 23u);
    for (uint64_t i = 0; i < 23; ++i)
      if (!once.contains(i))
        left.insert(i);
  }
  // Other samples are left out in each epoch.
  EXPECT_GT(left.size(), 15u);
}

TEST(SampleOrderTest, fillsTheLastBatchFromTheNextEpoch) {
  const SampleOrder order(23, 5, LastBatch::Fill, 1);
  EXPECT_EQ(order.stepsOf(1), 5u);
  EXPECT_EQ(order.stepsOf(5), 23u);
  const auto samples = samplesOf(order, 0, 23, 5);
  for (size_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_EQ(std::set(samples.begin() + 23 * epoch,
                       samples.begin() + 23 * (epoch + 1))
                  .size(),
              23u);
  EXPECT_EQ(order.sampleAt(4, 2).epoch, 0u);
  EXPECT_EQ(order.sampleAt(4, 3).epoch, 1u);
  // An epoch may have fewer samples than a mini-batch.
  const SampleOrder few(3, 8, LastBatch::Fill, 1);
  EXPECT_EQ(few.stepsOf(1), 1u);
  EXPECT_EQ(few.stepsOf(3), 2u);
  const auto repeated = samplesOf(few, 0, 3, 8);
  EXPECT_EQ(std::ranges::count(repeated, 0u), 8);
}

TEST(SampleOrderTest, isAnotherOneForEachEpochAndSeed) {
  for (LastBatch last : {LastBatch::Drop, LastBatch::Fill}) {
    const SampleOrder order(100, 10, last, 1), same(100, 10, last, 1),
        other(100, 10, last, 2);
    EXPECT_EQ(samplesOf(order, 0, 10, 10), samplesOf(same, 0, 10, 10));
    EXPECT_NE(samplesOf(order, 0, 10, 10), samplesOf(order, 10, 20, 10));
    EXPECT_NE(samplesOf(order, 0, 10, 10), samplesOf(other, 0, 10, 10));
  }
}

/// If nothing is left over, both modes give the same order.
TEST(SampleOrderTest, modesDifferOnlyInTheRest) {
  const SampleOrder drop(40, 8, LastBatch::Drop, 3),
      fill(40, 8, LastBatch::Fill, 3);
  EXPECT_EQ(samplesOf(drop, 0, 15, 8), samplesOf(fill, 0, 15, 8));
}

TEST(SampleOrderTest, countsStepsWithoutOverflow) {
  for (LastBatch last : {LastBatch::Drop, LastBatch::Fill}) {
    const SampleOrder order(uint64_t{1} << 40, 1, last, 1);
    EXPECT_EQ(order.stepsOf(1 << 20), uint64_t{1} << 60);
    EXPECT_EQ(order.stepsOf(1 << 30), UINT64_MAX);
  }
}

TEST(SampleOrderTest, refusesTooFewSamples) {
  EXPECT_THROW(SampleOrder(0, 1, LastBatch::Fill, 1), std::runtime_error);
  for (LastBatch last : {LastBatch::Drop, LastBatch::Fill})
    EXPECT_THROW(SampleOrder(1, 0, last, 1), std::invalid_argument);
  EXPECT_NO_THROW(SampleOrder(1, 2, LastBatch::Fill, 1));
  EXPECT_NO_THROW(SampleOrder(2, 2, LastBatch::Drop, 1));
  try {
    SampleOrder(7, 8, LastBatch::Drop, 1);
    ADD_FAILURE();
  } catch (const std::runtime_error &error) {
    EXPECT_EQ(std::string(error.what()),
              "expected at least 8 training samples, as many as a mini-batch "
              "has, got 7: give more data, compile the program with smaller or "
              "fewer micro-batches, or give --last-batch fill, which repeats "
              "samples in a mini-batch");
  }
  EXPECT_THROW(SampleOrder(8, 8, LastBatch::Drop, 1).sampleAt(0, 8),
               std::invalid_argument);
}

} // namespace
} // namespace chimera::runtime
