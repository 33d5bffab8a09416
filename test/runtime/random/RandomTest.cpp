//===- RandomTest.cpp - Derived random numbers ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/random/Random.h"

#include <gtest/gtest.h>

namespace chimera::runtime {
namespace {

// The first outputs of the published generator SplitMix64 for the seed 1234567.
TEST(RandomTest, splitMixIsThePublishedOne) {
  const uint64_t increment = 0x9E3779B97F4A7C15;
  EXPECT_EQ(splitMix64(1234567), 6457827717110365317u);
  EXPECT_EQ(splitMix64(1234567 + increment), 3203168211198807973u);
  EXPECT_EQ(splitMix64(1234567 + 2 * increment), 9817491932198370423u);
}

TEST(RandomTest, mixIsTheDocumentedFold) {
  EXPECT_EQ(mix({}), 0u);
  EXPECT_EQ(mix({5}), splitMix64(5));
  EXPECT_EQ(mix({5, 6}), splitMix64(splitMix64(5) ^ 6));
  EXPECT_NE(mix({5, 6}), mix({6, 5}));
}

} // namespace
} // namespace chimera::runtime
