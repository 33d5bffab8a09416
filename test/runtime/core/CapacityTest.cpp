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

/// Each worker of the result has a buffer of so many bytes, far from the
/// others.
program::ProgramT programOf(uint32_t workers, uint32_t copies, uint64_t bytes) {
  program::ProgramT program = program::samplePipeline(
      {.workers = workers, .microBatches = 1, .dataParallel = copies});
  for (auto &worker : program.workers)
    worker->buffers.emplace_back(program::ValueKind::Activation,
                                 uint64_t(1) << 45, bytes);
  return program;
}

constexpr uint64_t kGiB = uint64_t(1) << 30;

TEST(Capacity, TakesWhatFits) {
  program::ProgramT program = programOf(2, 1, 10 * kGiB);
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(2), 21 * kGiB), "");
  EXPECT_NE(faultOfCapacity(program, ranksBelow(2), 20 * kGiB), "");
  EXPECT_EQ(faultOfCapacity(program, ranksBelow(1), 20 * kGiB), "");
}

TEST(Capacity, NamesTheMemoryThatIsMissing) {
  EXPECT_EQ(
      faultOfCapacity(programOf(1, 2, 3072 * kGiB), ranksBelow(2), 24 * kGiB),
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
