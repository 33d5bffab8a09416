//===- ReadAtTest.cpp - Ranges of files -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/ReadAt.h"

#include <cerrno>
#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <string>

using namespace chimera::runtime;

namespace {
TEST(ReadAt, ReadsWhatIsThere) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  std::fputs("chimera", file.get());
  std::fflush(file.get());
  std::string bytes(4, '.');
  auto read = [&](uint64_t offset) {
    return readAt(fileno(file.get()), offset,
                  std::as_writable_bytes(std::span(bytes)));
  };
  EXPECT_EQ(read(1), 4);
  EXPECT_EQ(bytes, "hime");
  EXPECT_EQ(read(5), 2);
  EXPECT_EQ(bytes, "rame");
  EXPECT_EQ(read(7), 0);
  EXPECT_EQ(read(100), 0);
  EXPECT_EQ(read(UINT64_MAX), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(ReadAt, SaysThatItCannot) {
  std::byte byte;
  EXPECT_EQ(readAt(-1, 0, {&byte, 1}), -1);
  EXPECT_EQ(errno, EBADF);
}
} // namespace
