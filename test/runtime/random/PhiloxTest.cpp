//===- PhiloxTest.cpp - Random numbers by counting ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/random/Philox.h"

#include "runtime/system/ParallelFor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

using namespace chimera::runtime;

namespace {
using Numbers = std::array<uint32_t, 4>;

// The test vectors that the authors of Philox published.
TEST(Philox, IsThePublishedOne) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (Numbers{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)),
            (Numbers{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   0x299f31d0a4093822),
            (Numbers{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<bool> kept(double dropped, uint64_t first, int64_t count) {
  std::unique_ptr<bool[]> all(new bool[static_cast<size_t>(count)]);
  computeDropoutMask(dropped, /*key=*/77, first, count, all.get());
  return std::vector<bool>(all.get(), all.get() + count);
}

void inSevenths(int64_t count, int64_t, const RangeFunction &work) {
  for (int64_t k = 0; k < 7; ++k)
    work(count * k / 7, count * (k + 1) / 7);
}

// The count is a multiple neither of the 4 numbers of a counter nor of the
// numbers that are computed together.
TEST(Philox, KeepsByTheNumberOfAnElement) {
  const int64_t count = 120009;
  for (uint64_t first : {uint64_t(0), (uint64_t{5} << 34) - 7}) {
    std::vector<bool> all = kept(0.3, first, count);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t element = first + static_cast<uint64_t>(i);
      Numbers numbers = philox({static_cast<uint32_t>(element / 4),
                                static_cast<uint32_t>(element / 4 >> 32), 0, 0},
                               77);
      ASSERT_EQ(all[static_cast<size_t>(i)],
                numbers[element % 4] >= smallestKeptDraw(0.3))
          << element;
    }
    setParallelFor(inSevenths);
    EXPECT_EQ(kept(0.3, first, count), all);
    setParallelFor(nullptr);
  }
}

// Dropout of a part of a tensor drops the same elements as dropout of the whole
// tensor.
TEST(Philox, KeepsTheSameInParts) {
  std::vector<bool> all = kept(0.5, 5, 1000);
  for (int64_t from : {1, 6, 259, 999}) {
    std::vector<bool> part =
        kept(0.5, 5 + static_cast<uint64_t>(from), 1000 - from);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + from));
  }
}

// Fused kernels keep an element if curand_uniform, of cuRAND, exceeds the
// probability of dropping as a float. The same draws must be kept here.
TEST(Philox, KeepsWhereCurandsUniformIsMore) {
  auto isKept = [](uint64_t number, double dropped) {
    volatile float product = static_cast<float>(static_cast<uint32_t>(number));
    product = product * 2.3283064e-10f;
    volatile float uniform = product + 2.3283064e-10f / 2.0f;
    return uniform > static_cast<float>(dropped);
  };
  for (double dropped : {0., 1e-9, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99999999, 1.}) {
    const uint64_t least = smallestKeptDraw(dropped), none = uint64_t(1) << 32;
    for (uint64_t number = least; number < std::min(least + 2000, none);
         ++number)
      ASSERT_TRUE(isKept(number, dropped)) << dropped << ", " << number;
    for (uint64_t number = least; number > 0 && number + 2000 > least; --number)
      ASSERT_FALSE(isKept(number - 1, dropped)) << dropped << ", " << number;
    EXPECT_NEAR(static_cast<double>(least), dropped * 0x1p32, 0x1p8 + 1);
  }
  EXPECT_EQ(smallestKeptDraw(0), 0u);
  EXPECT_EQ(smallestKeptDraw(1), uint64_t(1) << 32);
}

TEST(Philox, KeepsAsManyAsItsProbabilitySays) {
  for (double probability : {0., 0.1, 0.5, 0.9, 1.}) {
    const double count = 1e6;
    std::vector<bool> all = kept(1 - probability, 0, 1000000);
    auto ones = static_cast<double>(std::ranges::count(all, true));
    double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(ones, count * probability, 4 * deviation) << probability;
  }
}
} // namespace
