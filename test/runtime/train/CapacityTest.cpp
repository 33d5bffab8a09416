//===- CapacityTest.cpp - Programs that a host can run --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Capacity.h"
#include "runtime/train/CheckpointedSteps.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <unistd.h>

namespace chimera::runtime {
namespace {

std::vector<uint32_t> ranksBelow(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// A program in which each worker has one more buffer, of `bytes` bytes, at an
/// offset far from the other buffers.
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
  EXPECT_EQ(capacityError(program, ranksBelow(2), 21 * kGiB), "");
  EXPECT_NE(capacityError(program, ranksBelow(2), 20 * kGiB), "");
  EXPECT_EQ(capacityError(program, ranksBelow(1), 20 * kGiB), "");
}

TEST(Capacity, CountsSamplesThatAreReadAhead) {
  program::ProgramT program = programOf(2, 2, 10 * kGiB);
  const std::vector<uint64_t> ahead = {2 * kGiB, kGiB};
  EXPECT_EQ(capacityError(program, ranksBelow(3), 36 * kGiB, false, ahead), "");
  EXPECT_EQ(capacityError(program, ranksBelow(3), 31 * kGiB), "");
  const std::string error =
      capacityError(program, ranksBelow(3), 34 * kGiB, false, ahead);
  EXPECT_NE(error.find("expected arenas and samples that are read ahead that "
                       "fit into the 34.0 GiB"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("smaller micro-batches, or --read-ahead 0"),
            std::string::npos)
      << error;
}

TEST(Capacity, NamesTheMemoryThatIsMissing) {
  EXPECT_EQ(
      capacityError(programOf(1, 2, 3072 * kGiB), ranksBelow(2), 24 * kGiB),
      "expected arenas that fit into the 24.0 GiB of memory and swap "
      "space of this host, got 6144.0 GiB for 2 ranks: use more hosts, "
      "more stages or smaller micro-batches");
}

TEST(Capacity, HostsHaveMemory) {
  EXPECT_GT(hostMemory(), uint64_t(1) << 28);
  EXPECT_LT(hostMemory(), uint64_t(1) << 50);
}

TEST(Capacity, OfTheWholeModelIsChecked) {
  program::ProgramT program = programOf(2, 1, 64);
  for (program::Stage &stage : program.stages)
    stage.mutate_weights_bytes(100 * kGiB);
  EXPECT_EQ(faultOfSequentialCapacity(program, 1, 500 * kGiB), "");
  EXPECT_EQ(faultOfSequentialCapacity(program, 1, 300 * kGiB),
            "expected weights, gradients and optimizer state that fit into the "
            "300.0 GiB of memory and swap space of this host, got 400.0 GiB "
            "for the whole model: leave out --sequential");
  // With so many data-parallel copies, a step has so many micro-batches that
  // their losses need much memory.
  program.data_parallel = 1 << 20;
  EXPECT_NE(faultOfSequentialCapacity(program, 1, 400 * kGiB), "");
  EXPECT_EQ(faultOfSequentialCapacity(program, 1, 401 * kGiB), "");
  program.data_parallel = 1;
  program.stages[0].mutate_boundary_bytes(100 * kGiB);
  EXPECT_EQ(faultOfSequentialCapacity(program, 1, 500 * kGiB), "");
  EXPECT_NE(faultOfSequentialCapacity(program, 2, 500 * kGiB), "");
}

TEST(Capacity, CountsTheCopiesOfCheckpoints) {
  const program::ProgramT program =
      program::samplePipeline({.dataParallel = 2, .ofModel = true});
  const std::vector<uint32_t> ranks = ranksBelow(program::rankCount(program));
  uint64_t copies = 0;
  for (uint32_t rank : ranks)
    copies += checkpointCopyBytes(program, rank);
  EXPECT_GT(copies, 0u);
  // Find the memory that suffices without checkpoints.
  uint64_t least = 0, most = kGiB;
  while (least + 1 < most) {
    const uint64_t middle = (least + most) / 2;
    (capacityError(program, ranks, middle).empty() ? most : least) = middle;
  }
  EXPECT_EQ(capacityError(program, ranks, most + copies, true), "");
  EXPECT_NE(capacityError(program, ranks, most + copies - 1, true)
                .find("expected arenas and copies for --checkpoint that fit"),
            std::string::npos);
  // Arenas of accelerators are not in the memory of the host.
  EXPECT_EQ(capacityError(program, ranks, copies, true, {}, true), "");
  EXPECT_NE(capacityError(program, ranks, copies - 1, true, {}, true)
                .find("expected copies for --checkpoint that fit"),
            std::string::npos);
  EXPECT_EQ(capacityError(program, ranks, 0, false, {}, true), "");
  EXPECT_NE(faultOfSequentialCapacity(program, 1, 0, true)
                .find("optimizer state and their copy for --checkpoint that"),
            std::string::npos);
}

/// A folder that imitates files of the system: control groups, and files of
/// /proc.
struct System {
  ~System() { std::filesystem::remove_all(root); }
  void write(const std::string &path, const std::string &text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  }
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) /
      ("chimera-capacity-" + std::to_string(getpid()));
};

TEST(Capacity, OfAContainerIsItsGroups) {
  const System system;
  EXPECT_EQ(hostMemory(system.root), hostMemory("/none"));
  system.write("proc/self/cgroup", "0::/jobs/mine");
  system.write("proc/self/mountinfo", "31 21 0:28 / /groups rw - cgroup2 c rw");
  system.write("groups/jobs/mine/memory.max", "max");
  EXPECT_EQ(hostMemory(system.root), hostMemory("/none"));
  system.write("groups/jobs/memory.max", "50000000");
  system.write("groups/jobs/memory.swap.max", "0");
  EXPECT_EQ(hostMemory(system.root), 50000000u);
}

TEST(Capacity, OfAContainerOfVersionOneIsItsGroups) {
  const System system;
  system.write("proc/self/cgroup", "4:memory:/mine");
  system.write("proc/self/mountinfo",
               "33 31 0:30 / /groups rw - cgroup cgroup rw,memory");
  system.write("groups/mine/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(hostMemory(system.root), hostMemory("/none"));
  system.write("groups/mine/memory.memsw.limit_in_bytes", "50000000");
  EXPECT_EQ(hostMemory(system.root), 50000000u);
}

TEST(Capacity, OfADeviceIsItsCap) {
  program::WorkerT worker;
  EXPECT_EQ(deviceMemoryError(worker, 1, 1, UINT64_MAX), "");
  worker.memory_cap = 1000;
  EXPECT_EQ(deviceMemoryError(worker, 700, 200, 1000), "");
  EXPECT_EQ(deviceMemoryError(worker, 700, 200, 1100),
            "expected at most the memory_cap of 1000 bytes in use on the "
            "device, got 1100: 700 of the arena, 200 of stashes, and 200 "
            "outside of the plan (buffers of NCCL, workspaces of libraries, "
            "memory that allocators keep): compile for memory_cap(800), which "
            "leaves room for these, or raise the memory_cap");
  EXPECT_TRUE(
      deviceMemoryError(worker, 700, 200, 2000)
          .ends_with("memory that allocators keep): raise the memory_cap"));
}

} // namespace
} // namespace chimera::runtime
