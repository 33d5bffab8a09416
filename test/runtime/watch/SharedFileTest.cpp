//===- SharedFileTest.cpp - A file that processes of a host share ---------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/SharedFile.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace chimera::runtime;

namespace {
constexpr uint64_t kBytes = 8192;
using Location = SharedFile::Location;

/// A file of another program, of the same size as the shared files of these
/// tests. The destructor checks that nothing has changed the file.
class Victim {
public:
  explicit Victim(unsigned flags)
      : fd(memfd_create("victim", flags)), before(kBytes, 'v') {
    if (pwrite(fd, before.data(), kBytes, 0) != static_cast<ssize_t>(kBytes))
      ADD_FAILURE() << "cannot write it";
  }
  ~Victim() {
    std::vector<char> now(kBytes);
    EXPECT_EQ(pread(fd, now.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
    EXPECT_EQ(now, before) << "it was written";
    close(fd);
  }
  const int fd;

private:
  const std::vector<char> before;
};

TEST(SharedFile, IsSharedByAllThatOpenIt) {
  SharedFile made = SharedFile::make(kBytes);
  std::optional<SharedFile> opened = SharedFile::open(made.location());
  ASSERT_TRUE(opened);
  EXPECT_NE(opened->fd(), made.fd());
  ASSERT_EQ(pwrite(made.fd(), "page", 4, 100), 4);
  char text[4] = {};
  ASSERT_EQ(pread(opened->fd(), text, 4, 100), 4);
  EXPECT_EQ(std::string(text, 4), "page");
  EXPECT_NE(ftruncate(opened->fd(), 0), 0) << "its size is sealed";
}

TEST(SharedFile, IsNotAnotherFileAtItsPlace) {
  SharedFile made = SharedFile::make(kBytes);
  for (unsigned flags : {0u, unsigned(MFD_ALLOW_SEALING)}) {
    Victim victim(flags);
    Location location = made.location();
    location.fd = victim.fd;
    EXPECT_FALSE(SharedFile::open(location));
  }
}

TEST(SharedFile, IsNotAnotherPage) {
  SharedFile made = SharedFile::make(kBytes), other = SharedFile::make(kBytes);
  Location location = made.location();
  location.fd = other.fd();
  EXPECT_FALSE(SharedFile::open(location)) << "another run's";
  location.nonce = other.location().nonce;
  EXPECT_TRUE(SharedFile::open(location));
  location.bytes = kBytes * 2;
  EXPECT_FALSE(SharedFile::open(location));
}

TEST(SharedFile, IsNotAPipeOrNothing) {
  SharedFile made = SharedFile::make(kBytes);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  Location location = made.location();
  location.fd = pipes[0];
  EXPECT_FALSE(SharedFile::open(location));
  close(pipes[0]);
  close(pipes[1]);
  EXPECT_FALSE(SharedFile::open(location));
}

/// If this process has too many open files, it cannot open the file. This must
/// be reported as it is, and not as a file in another container.
TEST(SharedFile, CannotBeOpenedWithTooManyOpenFiles) {
  SharedFile made = SharedFile::make(kBytes);
  rlimit before{}, none{};
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  const int lowest = dup(made.fd());
  close(lowest);
  none.rlim_cur = static_cast<rlim_t>(lowest);
  setrlimit(RLIMIT_NOFILE, &none);
  std::string error;
  try {
    SharedFile::open(made.location());
  } catch (const std::runtime_error &thrown) {
    error = thrown.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(error.find("Too many open files: raise ulimit -n"),
            std::string::npos)
      << error;
}

TEST(SharedFile, IsNotFoundFromAnotherPidNamespace) {
  SharedFile made = SharedFile::make(kBytes);
  Location location = made.location();
  ++location.pidNamespace;
  EXPECT_FALSE(SharedFile::open(location));
}
} // namespace
