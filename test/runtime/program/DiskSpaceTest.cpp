//===- DiskSpaceTest.cpp - Whether files will fit on their disks ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/DiskSpace.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace chimera::program;
namespace fs = std::filesystem;

namespace {
const fs::path folder = testing::TempDir();

TEST(DiskSpace, IsEnoughForWhatFits) {
  EXPECT_EQ(checkDiskSpace({}), "");
  EXPECT_EQ(checkDiskSpace({{folder / "none", 1}, {folder / "empty", 0}}), "");
  EXPECT_EQ(checkDiskSpace({{"name-without-folder", 1}}), "");
}

TEST(DiskSpace, IsMissingForMoreThanTheDiskHas) {
  std::string path = folder / "none";
  std::string refusal = checkDiskSpace({{path, uint64_t(1) << 60}});
  EXPECT_TRUE(refusal.starts_with(path + ": expected room for 115292150460"))
      << refusal;
  EXPECT_TRUE(refusal.ends_with(": free some, or write elsewhere")) << refusal;
  EXPECT_NE(checkDiskSpace({{path, UINT64_MAX}}), "");
}

// The disk has room for each of the two files, but not for both together.
TEST(DiskSpace, IsThatForAllFilesOfADisk) {
  struct statvfs has;
  ASSERT_EQ(::statvfs(folder.c_str(), &has), 0);
  uint64_t free = (geteuid() == 0 ? has.f_bfree : has.f_bavail) * has.f_frsize;
  uint64_t most = free / 4 * 3;
  std::string first = folder / "first", second = folder / "second";
  EXPECT_EQ(checkDiskSpace({{first, most}}), "");
  std::string refusal = checkDiskSpace({{first, most}, {second, most}});
  EXPECT_TRUE(refusal.starts_with(first + ", " + second + ": expected room "))
      << refusal;
}

TEST(DiskSpace, IsWithinTheLimitOfAFile) {
  std::string path = folder / "none";
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string refusal = checkDiskSpace({{path, 1001}});
  std::string fits = checkDiskSpace({{path, 1000}, {path, 1000}});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(refusal, path + ": expected a limit of at least 1001 bytes on the "
                            "size of a file (ulimit -f), got 1000");
  EXPECT_EQ(fits, "");
}

TEST(DiskSpace, IsNotCheckedForDevices) {
  EXPECT_EQ(checkDiskSpace({{"/dev/null", UINT64_MAX}, {"/dev/full", 1}}), "");
}

TEST(DiskSpace, IsNotAskedWhereThereIsNoFolder) {
  EXPECT_EQ(checkDiskSpace({{folder / "none" / "f", UINT64_MAX}}), "");
}
} // namespace
