//===- CoresTest.cpp - The cores of ranks ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Cores.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
/// A test with a folder that imitates the kernel's files in /proc and /sys.
class CoresTest : public testing::Test {
protected:
  ~CoresTest() override { fs::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  }
  void mountVersionTwo(const std::string &group, const std::string &mountRoot) {
    write("proc/self/cgroup", "0::" + group);
    write("proc/self/mountinfo",
          "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
          "31 21 0:28 " +
              mountRoot +
              " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw");
  }

  const fs::path root = fs::path(testing::TempDir()) /
                        ("chimera-cores-" + std::to_string(getpid()));
};

TEST_F(CoresTest, AreAtLeastOne) {
  for (const Cores &cores : {findCores(), findCores(root)}) {
    EXPECT_GE(cores.usable, 1u);
    EXPECT_GE(cores.host, 1u);
  }
}

TEST_F(CoresTest, HaveNoQuotaWhereNothingSaysSo) {
  EXPECT_FALSE(findQuota(root));
  mountVersionTwo("/", "/");
  EXPECT_FALSE(findQuota(root));
  write("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_FALSE(findQuota(root));
  write("sys/fs/cgroup/cpu.max", "");
  EXPECT_FALSE(findQuota(root));
}

// A container that was started by `docker run --cpus=2.5` has the first quota
// below, if control groups have namespaces.
TEST_F(CoresTest, AreThoseOfAContainer) {
  mountVersionTwo("/", "/");
  write("sys/fs/cgroup/cpu.max", "250000 100000");
  EXPECT_EQ(findQuota(root), 2.5);
  write("sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(findCores(root).usable, 1u);
  EXPECT_EQ(findCores(root).host, 1u);
  write("sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(findCores(root).usable, 1u) << "less than a core is one";
}

TEST_F(CoresTest, AreTheLeastQuotaOfAllEnclosingGroups) {
  mountVersionTwo("/system.slice/job/step", "/");
  write("sys/fs/cgroup/system.slice/cpu.max", "300000 100000");
  EXPECT_EQ(findQuota(root), 3);
  write("sys/fs/cgroup/system.slice/job/step/cpu.max", "400000 100000");
  EXPECT_EQ(findQuota(root), 3);
  write("sys/fs/cgroup/system.slice/job/cpu.max", "100000 50000");
  EXPECT_EQ(findQuota(root), 2);
  write("sys/fs/cgroup/other/cpu.max", "100000 100000");
  EXPECT_EQ(findQuota(root), 2) << "another's";
}

// Without a namespace of control groups, a container sees the whole path of its
// group. But only its own part of the hierarchy is mounted.
TEST_F(CoresTest, AreThoseOfAMountedPart) {
  mountVersionTwo("/docker/abc/inner", "/docker/abc");
  write("sys/fs/cgroup/inner/cpu.max", "600000 100000");
  write("sys/fs/cgroup/cpu.max", "500000 100000");
  EXPECT_EQ(findQuota(root), 5);
  for (const char *outside : {"/docker/abcd", "/../other", "/docker"}) {
    mountVersionTwo(outside, "/docker/abc");
    EXPECT_EQ(findQuota(root), 5) << outside;
  }
}

TEST_F(CoresTest, AreThoseOfAMountWithASpaceInItsName) {
  write("proc/self/cgroup", "0::/");
  write("proc/self/mountinfo", "31 21 0:28 / /my\\040groups\\134x rw - cgroup2 "
                               "cgroup2 rw");
  write("my groups\\x/cpu.max", "200000 100000");
  EXPECT_EQ(findQuota(root), 2);
}

TEST_F(CoresTest, ReadsCgroupsOfVersionOne) {
  write("proc/self/cgroup", "4:memory:/many\n"
                            "2:cpu,cpuacct:/slurm/job_7\n"
                            "0::/unified");
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
        "rw,cpu,cpuacct\n"
        "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  std::string job = "sys/fs/cgroup/cpu,cpuacct/slurm/job_7/";
  write(job + "cpu.cfs_period_us", "100000");
  write(job + "cpu.cfs_quota_us", "-1");
  EXPECT_FALSE(findQuota(root));
  write("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "50000");
  write("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "200000");
  EXPECT_EQ(findQuota(root), 4);
  write(job + "cpu.cfs_quota_us", "150000");
  EXPECT_EQ(findQuota(root), 1.5);
}
} // namespace
