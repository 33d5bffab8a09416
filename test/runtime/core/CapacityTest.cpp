//===- CapacityTest.cpp - What a host can run -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Capacity.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <numeric>

namespace chimera::runtime {
namespace {

std::vector<uint32_t> ranksBelow(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(Capacity, TakesWhatFits) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  uint64_t both =
      program.workers[0]->arena_bytes + program.workers[1]->arena_bytes;
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(2), both), "");
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(2), hostMemory()), "");
  EXPECT_NE(faultOfCapacity(program, ranksBelow(2), both - 1), "");
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(1), both - 1), "");
}

TEST(Capacity, NamesTheMemoryThatIsMissing) {
  program::ProgramT program =
      program::samplePipeline({.workers = 1, .dataParallel = 2});
  program.workers[0]->arena_bytes = uint64_t(3) << 40;
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(2), uint64_t(24) << 30),
            "expected arenas that fit into the 24.0 GiB of memory and swap "
            "space of this host, got 6144.0 GiB for 2 ranks: use more hosts, "
            "more stages or smaller micro-batches");
}

TEST(Capacity, HostsHaveMemory) {
  EXPECT_GT(hostMemory(), uint64_t(1) << 28);
  EXPECT_LT(hostMemory(), uint64_t(1) << 50);
}

} // namespace
} // namespace chimera::runtime
