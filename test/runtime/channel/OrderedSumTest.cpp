//===- OrderedSumTest.cpp - An all-reduce in a declared order -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/nccl/OrderedSum.h"

#include <gtest/gtest.h>

using namespace chimera::runtime;
using chimera::runtime::nccl::OrderedSum;

namespace {
TEST(OrderedSum, SharesAreTheWholeSumOnce) {
  const std::vector<uint32_t> groups[] = {
      {4, 2}, {0, 1, 2}, {0, 0, 5, 0}, {7, 6, 5, 4, 3, 2, 1, 0}};
  for (const std::vector<uint32_t> &contributions : groups)
    for (uint64_t bytes : {0, 1, 4, 8, 9, 100, 4096, 99996})
      for (uint64_t scratch : {0, 64, 1000, 1 << 20}) {
        OrderedSum plan({0, contributions}, bytes, scratch);
        uint64_t next = 0;
        for (uint64_t round = 0; round < plan.rounds(); ++round) {
          EXPECT_LT(next, bytes) << "a round for nothing";
          for (size_t member = 0; member < plan.members().size(); ++member) {
            OrderedSum::Share share = plan.share(round, member);
            EXPECT_EQ(share.begin, next);
            EXPECT_EQ(share.begin % 8, share.begin == bytes ? bytes % 8 : 0);
            next += share.bytes;
          }
        }
        EXPECT_EQ(next, bytes);
      }
}

TEST(OrderedSum, StaysWithinItsScratchMemory) {
  for (uint64_t bytes : {100, 4096, 1000000})
    for (uint64_t scratch : {64, 1000, 1 << 20}) {
      OrderedSum plan({0, {0, 1, 2, 1}}, bytes, scratch);
      EXPECT_LE(plan.scratchOf(1), scratch);
      EXPECT_LE(plan.scratchOf(2), scratch);
    }
}

TEST(OrderedSum, TakesOneRoundWhereTheScratchMemoryAllowsIt) {
  OrderedSum plan({0, {0, 1}}, 1000, 1008);
  EXPECT_EQ(plan.rounds(), 1u);
  // Rank 1 needs half as much memory as rank 0.
  EXPECT_EQ(plan.scratchOf(1), 504u);
}
} // namespace
