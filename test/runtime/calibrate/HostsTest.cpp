//===- HostsTest.cpp - The distribution of ranks over hosts ---------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Hosts.h"

#include "runtime/control/InProcess.h"

#include <gtest/gtest.h>
#include <thread>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Ranks on the given hosts, by rank. Each host has `cores` cores.
std::vector<HostOfRank> ranksOn(std::vector<uint32_t> hosts, uint32_t cores,
                                uint32_t threads = 1) {
  std::vector<HostOfRank> ranks;
  for (uint32_t host : hosts)
    ranks.push_back({host, cores, threads, /*memory=*/1200});
  return ranks;
}

TEST(Hosts, ThatAreAlike) {
  Hosts hosts = hostsOf(ranksOn({0, 0, 2, 2, 4, 4}, 2));
  EXPECT_EQ(hosts.count, 3u);
  EXPECT_EQ(hosts.ranksOnEach, 2u);
  EXPECT_EQ(hosts.memory, 600u);
  EXPECT_FALSE(hosts.shareCores);
  EXPECT_EQ(hosts.concurrentRanks, 0u);
  EXPECT_EQ(hosts.speedup(), 1);
  EXPECT_TRUE(hosts.haveNodeLinks());
  hosts = hostsOf(ranksOn({5, 5, 5}, 3));
  EXPECT_EQ(hosts.ranksOnEach, 3u);
  EXPECT_FALSE(hosts.haveNodeLinks());
  // With one rank on each host, no message stays within a host.
  hosts = hostsOf(ranksOn({1, 0}, 1));
  EXPECT_EQ(hosts.ranksOnEach, 1u);
  EXPECT_FALSE(hosts.haveNodeLinks());
}

TEST(Hosts, ThatHaveNoCommonNumberOfRanks) {
  Hosts hosts = hostsOf(ranksOn({0, 0, 0, 3}, 1));
  EXPECT_EQ(hosts.count, 2u);
  EXPECT_EQ(hosts.ranksOnEach, 0u);
  EXPECT_FALSE(hosts.haveNodeLinks());
  EXPECT_EQ(hosts.memory, 400u);
  EXPECT_TRUE(hosts.shareCores);
  EXPECT_EQ(hosts.concurrentRanks, 0u);
  EXPECT_EQ(hosts.speedup(), 1);
}

TEST(Hosts, WithAlternatingRanks) {
  EXPECT_EQ(hostsOf(ranksOn({0, 1, 0, 1}, 2)).ranksOnEach, 0u);
  EXPECT_EQ(hostsOf(ranksOn({0, 1, 1, 0}, 2)).ranksOnEach, 0u);
}

// speedup() is the speed of a rank that computes alone, relative to its speed
// while all ranks of the host compute. It is ranksOnEach / concurrentRanks.
TEST(Hosts, SpeedUpARankThatIsAloneOnSharedCores) {
  struct Case {
    uint32_t ranks, threads, cores, withCores;
  };
  for (const Case &of : {Case{4, 1, 2, 2}, Case{3, 1, 2, 2}, Case{4, 2, 6, 3},
                         Case{2, 4, 4, 1}, Case{4, 3, 8, 2}}) {
    Hosts hosts = hostsOf(
        ranksOn(std::vector<uint32_t>(of.ranks, 0), of.cores, of.threads));
    EXPECT_TRUE(hosts.shareCores);
    EXPECT_EQ(hosts.concurrentRanks, of.withCores);
    EXPECT_DOUBLE_EQ(hosts.speedup() * of.withCores / of.ranks, 1);
    if (of.cores % of.threads == 0) {
      EXPECT_DOUBLE_EQ(hosts.speedup(),
                       double(of.ranks * of.threads) / of.cores);
    }
  }
  // Here a rank has more threads than its host has cores.
  EXPECT_EQ(hostsOf(ranksOn({0, 0}, 2, 3)).concurrentRanks, 1u);
}

// Ranks with their own devices, such as GPUs, do not use the cores and the
// memory of the host.
TEST(Hosts, ThatHaveOtherDevices) {
  std::vector<HostOfRank> ranks = ranksOn({0, 0, 0, 0}, /*cores=*/2);
  for (HostOfRank &rank : ranks)
    rank.ranksOnDevice = 1;
  Hosts hosts = hostsOf(ranks);
  EXPECT_EQ(hosts.ranksOnDevice, 1u);
  EXPECT_EQ(hosts.memory, 1200u);
  EXPECT_FALSE(hosts.shareCores);
  EXPECT_EQ(hosts.concurrentRanks, 0u);
  ranks[0].ranksOnDevice = ranks[3].ranksOnDevice = 2;
  hosts = hostsOf(ranks);
  EXPECT_EQ(hosts.ranksOnDevice, 2u);
  EXPECT_EQ(hosts.memory, 600u);
}

// A host has one rank. Its threads share cores, but no other rank uses these
// cores.
TEST(Hosts, WithOneRankEachShareNoCores) {
  Hosts hosts = hostsOf(ranksOn({0, 1}, /*cores=*/2, /*threads=*/4));
  EXPECT_FALSE(hosts.shareCores);
  EXPECT_EQ(hosts.concurrentRanks, 0u);
}

TEST(Hosts, ThatDifferInCoresHaveNoCommonSpeedup) {
  std::vector<HostOfRank> ranks = ranksOn({0, 0, 2, 2}, 1);
  ranks[2].cores = ranks[3].cores = 4;
  Hosts hosts = hostsOf(ranks);
  EXPECT_EQ(hosts.ranksOnEach, 2u);
  EXPECT_TRUE(hosts.shareCores);
  EXPECT_EQ(hosts.speedup(), 1);
}

TEST(Hosts, AreKnownAtEveryRank) {
  auto controls = makeInProcessControls(3);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<HostOfRank> all =
          gatherHosts(*controls[rank], {.host = rank / 2, .cores = 7}, 30s);
      EXPECT_EQ(all.size(), 3u);
      if (all.size() == 3) {
        EXPECT_EQ(all[1].host, 0u);
        EXPECT_EQ(all[2].host, 1u);
        EXPECT_EQ(all[2].cores, 7u);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}
} // namespace
