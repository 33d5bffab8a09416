//===- LaunchTest.cpp - How this process was started ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Launch.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace chimera::runtime;

namespace {
class Launch : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
          "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "RANK",
          "WORLD_SIZE", "LOCAL_WORLD_SIZE"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(Launch, AProcessByItselfIsNoJob) { EXPECT_FALSE(findJob()); }

TEST_F(Launch, FindsTorchrun) {
  setenv("RANK", "3", 1);
  setenv("WORLD_SIZE", "8", 1);
  setenv("LOCAL_WORLD_SIZE", "4", 1);
  std::optional<Job> job = findJob();
  ASSERT_TRUE(job);
  EXPECT_STREQ(job->launcher, "torchrun");
  EXPECT_EQ(job->rank, 3u);
  EXPECT_EQ(job->ranks, 8u);
  EXPECT_EQ(job->ranksOnHost, 4u);
}

TEST_F(Launch, FindsASlurmStepButNotABatchScript) {
  setenv("SLURM_PROCID", "1", 1);
  EXPECT_FALSE(findJob());
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  ASSERT_TRUE(findJob());
  EXPECT_EQ(findJob()->ranksOnHost, 2u);
}

TEST_F(Launch, IgnoresWhatIsNoNumber) {
  setenv("RANK", "3x", 1);
  setenv("WORLD_SIZE", "8", 1);
  EXPECT_FALSE(findJob());
}

TEST_F(Launch, RanksShareTheCores) {
  EXPECT_EQ(threadsPerRank(1000000), 1u);
  EXPECT_GE(threadsPerRank(1), threadsPerRank(2));
  EXPECT_LE(threadsPerRank(1), usableCores());
}

TEST_F(Launch, AProgressThreadWantsACoreOfItsOwn) {
  uint32_t usable = usableCores();
  EXPECT_EQ(hasCoreForProgress(1, usable - 1), usable > 1);
  EXPECT_FALSE(hasCoreForProgress(1, usable));
  // All cores are computed on, each rank has but one, or several share it.
  EXPECT_FALSE(hasCoreForProgress(hostCores(), 1));
  EXPECT_FALSE(hasCoreForProgress(hostCores() / 2 + 1, 1));
  EXPECT_FALSE(hasCoreForProgress(1000000, 4000));
}
} // namespace
