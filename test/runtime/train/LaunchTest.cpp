//===- LaunchTest.cpp - How this process was started ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Launch.h"

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
          "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID",
          "TORCHELASTIC_RESTART_COUNT"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(Launch, ASingleProcessIsNotAJob) { EXPECT_FALSE(findJob()); }

// If all ranks have the same error, only one rank should report it. The others
// wait for the back-off time first. It must be long enough on a busy machine.
TEST_F(Launch, PatienceIsFourTimesTheStartTimeWithinBounds) {
  using namespace std::chrono_literals;
  EXPECT_EQ(firstReportTimeout(0ms), 2s);
  EXPECT_EQ(firstReportTimeout(300ms), 2s);
  EXPECT_EQ(firstReportTimeout(3s), 12s);
  EXPECT_EQ(firstReportTimeout(1h), 1min);
  EXPECT_EQ(firstReportTimeout(-1s), 2s);
}

TEST_F(Launch, FindsTorchrun) {
  setenv("RANK", "3", 1);
  setenv("WORLD_SIZE", "8", 1);
  setenv("LOCAL_WORLD_SIZE", "4", 1);
  std::optional<Job> job = findJob();
  ASSERT_TRUE(job);
  EXPECT_STREQ(job->launcher, "RANK and WORLD_SIZE in the environment");
  setenv("TORCHELASTIC_RUN_ID", "none", 1);
  job = findJob();
  ASSERT_TRUE(job);
  EXPECT_STREQ(job->launcher, "torchrun");
  EXPECT_EQ(job->rank, 3u);
  EXPECT_EQ(job->ranks, 8u);
  EXPECT_EQ(job->ranksOnHost, 4u);
}

// If a process ignored invalid variables, it would run alone and overwrite the
// files of the other ranks.
TEST_F(Launch, ARankMustBeBelowTheNumberOfRanks) {
  struct {
    const char *rank, *ranks;
  } cases[] = {{"3", "3"},     {"-1", "3"},   {"3x", "8"}, {"", "3"},
               {"0x1", "3"},   {"1 ", "3"},   {"0", "0"},  {"0", "4294967296"},
               {"0", nullptr}, {nullptr, "3"}};
  for (const auto &each : cases) {
    SetUp();
    if (each.rank)
      setenv("RANK", each.rank, 1);
    if (each.ranks)
      setenv("WORLD_SIZE", each.ranks, 1);
    try {
      findJob();
      FAIL() << each.rank;
    } catch (const std::invalid_argument &error) {
      std::string text = error.what();
      EXPECT_NE(text.find(std::string("got RANK='") +
                          (each.rank ? each.rank : "") + "' and WORLD_SIZE='" +
                          (each.ranks ? each.ranks : "") + "'"),
                std::string::npos)
          << text;
    }
    waitForFirstReport(); // throws nothing
  }
  // The variables of Open MPI take precedence over RANK, because RANK may mean
  // something else under another launcher.
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_EQ(findJob()->rank, 1u);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  EXPECT_THROW(findJob(), std::invalid_argument);
}

TEST_F(Launch, FindsWhereRanksMeet) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_FALSE(findJob()->master);
  setenv("MASTER_ADDR", "node7", 1);
  EXPECT_FALSE(findJob()->master) << "at which port?";
  setenv("MASTER_PORT", "29500", 1);
  std::optional<MasterAddress> master = findJob()->master;
  ASSERT_TRUE(master);
  EXPECT_EQ(master->host, "node7");
  EXPECT_EQ(master->port, 29500);
  EXPECT_FALSE(master->isServed);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_TRUE(findJob()->master->isServed);
  // After a restart, the count may differ between the hosts of a run.
  std::string first = findJob()->master->run;
  setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
  EXPECT_EQ(findJob()->master->run, first);
  setenv("TORCHELASTIC_RUN_ID", "other", 1);
  EXPECT_NE(findJob()->master->run, first);
  for (const char *port : {"0", "65536", "port"}) {
    setenv("MASTER_PORT", port, 1);
    EXPECT_FALSE(findJob()->master) << port;
  }
}

// Here srun starts a torchrun on each host, and each torchrun starts the ranks.
// The variables of torchrun must count, not the variables of the other
// launchers.
TEST_F(Launch, ATorchrunInsideAnotherLauncherMakesTheRanks) {
  setenv("SLURM_PROCID", "1", 1);
  setenv("SLURM_STEP_NUM_TASKS", "3", 1);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  setenv("RANK", "4", 1);
  setenv("WORLD_SIZE", "6", 1);
  EXPECT_STREQ(findJob()->launcher, "mpirun");
  setenv("TORCHELASTIC_RUN_ID", "7", 1);
  EXPECT_STREQ(findJob()->launcher, "torchrun");
  EXPECT_EQ(findJob()->rank, 4u);
  EXPECT_EQ(findJob()->ranks, 6u);
}

TEST_F(Launch, FindsASlurmStepButNotABatchScript) {
  setenv("SLURM_PROCID", "1", 1);
  EXPECT_FALSE(findJob());
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  ASSERT_TRUE(findJob());
  EXPECT_EQ(findJob()->ranksOnHost, 2u);
}

/// The threads of each of `ranks` ranks that share a host, as text: "7+1" for 7
/// computing threads and a progress thread.
std::string threadsOf(const Cores &cores, uint32_t ranks, uint32_t asked,
                      ProgressMode mode) {
  RankThreads threads = shareCores(cores, ranks, asked, mode);
  return std::to_string(threads.computing) + (threads.progress ? "+1" : "");
}

TEST(RankThreads, AreAnEqualShareOfTheCores) {
  auto share = [](uint32_t host, uint32_t usable, uint32_t ranks) {
    return threadsOf({host, usable}, ranks, 0, ProgressMode::Off);
  };
  EXPECT_EQ(share(16, 16, 1), "16");
  EXPECT_EQ(share(16, 16, 3), "5");
  EXPECT_EQ(share(2, 2, 4), "1");
  EXPECT_EQ(share(16, 16, 0), "16") << "an unknown number of ranks";
  EXPECT_EQ(share(16, 2, 4), "2") << "bound to two cores";
}

TEST(RankThreads, LeaveACoreToProgressWhereItCostsLittle) {
  auto share = [](uint32_t host, uint32_t usable, uint32_t ranks) {
    return threadsOf({host, usable}, ranks, 0, ProgressMode::Auto);
  };
  EXPECT_EQ(share(64, 64, 4), "15+1");
  EXPECT_EQ(share(32, 32, 4), "7+1");
  EXPECT_EQ(share(31, 31, 4), "7");
  EXPECT_EQ(share(16, 16, 4), "4");
  EXPECT_EQ(share(2, 2, 4), "1");
  EXPECT_EQ(share(64, 8, 4), "7+1") << "bound to its share";
  EXPECT_EQ(share(64, 1, 4), "1") << "bound to one core";
}

TEST(RankThreads, LeaveWhatIsAskedForAlone) {
  auto given = [](uint32_t asked) {
    return threadsOf({16, 16}, 4, asked, ProgressMode::Auto);
  };
  EXPECT_EQ(given(1), "1+1");
  EXPECT_EQ(given(3), "3+1");
  EXPECT_EQ(given(4), "4");
  EXPECT_EQ(given(4000), "4000");
  EXPECT_EQ(threadsOf({16, 1}, 4, 1, ProgressMode::Auto), "1");
  EXPECT_EQ(threadsOf({16, 16}, 4, UINT32_MAX, ProgressMode::Auto),
            "4294967295");
}

TEST(RankThreads, FollowTheProgressOption) {
  EXPECT_EQ(threadsOf({2, 2}, 4, 0, ProgressMode::On), "1+1");
  EXPECT_EQ(threadsOf({16, 16}, 4, 0, ProgressMode::On), "3+1");
  EXPECT_EQ(threadsOf({16, 16}, 4, 4, ProgressMode::On), "4+1");
  EXPECT_EQ(threadsOf({64, 64}, 4, 0, ProgressMode::Off), "16");
  EXPECT_EQ(threadsOf({64, 64}, 4, 1, ProgressMode::Off), "1");
}
} // namespace
