//===- PhiloxTest.cpp - Random numbers by counting ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/Philox.h"

#include "runtime/system/Ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

using namespace chimera::runtime;

namespace {
using Numbers = std::array<uint32_t, 4>;

// Of the authors' known answers.
TEST(Philox, IsThePublishedOne) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (Numbers{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)),
            (Numbers{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   0x299f31d0a4093822),
            (Numbers{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<bool> kept(double probability, uint64_t first, int64_t samples,
                       int64_t elements) {
  auto count = static_cast<size_t>(samples * elements);
  std::unique_ptr<bool[]> all(new bool[count]);
  keepElements(probability, /*key=*/77, first, samples, elements, all.get());
  return std::vector<bool>(all.get(), all.get() + count);
}

void inSevenths(int64_t count, int64_t, const OnRange &work) {
  for (int64_t k = 0; k < 7; ++k)
    work(count * k / 7, count * (k + 1) / 7);
}

// Sizes that are no multiple of a counter's or of what is worked on at once.
TEST(Philox, KeepsByTheNumbersOfElementAndSample) {
  const int64_t samples = 3, elements = 40003;
  const uint64_t first = (uint64_t{5} << 32) + 0xffffffff;
  std::vector<bool> all = kept(0.7, first, samples, elements);
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t e = 0; e < elements; ++e) {
      uint64_t sample = first + static_cast<uint64_t>(s);
      Numbers numbers = philox({static_cast<uint32_t>(e / 4), 0,
                                static_cast<uint32_t>(sample),
                                static_cast<uint32_t>(sample >> 32)},
                               77);
      ASSERT_EQ(all[static_cast<size_t>(s * elements + e)],
                numbers[static_cast<size_t>(e % 4)] < 0.7 * 4294967296.)
          << "sample " << s << ", element " << e;
    }
  runRangesBy(inSevenths);
  EXPECT_EQ(kept(0.7, first, samples, elements), all);
  runRangesBy(nullptr);
}

TEST(Philox, KeepsAsManyAsItsProbabilitySays) {
  for (double probability : {0., 0.1, 0.5, 0.9, 1.}) {
    const double count = 1e6;
    std::vector<bool> all =
        kept(probability, 0, 10, static_cast<int64_t>(count) / 10);
    auto ones = static_cast<double>(std::ranges::count(all, true));
    double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(ones, count * probability, 4 * deviation) << probability;
  }
}
} // namespace
