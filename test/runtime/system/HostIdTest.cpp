//===- HostIdTest.cpp - Tests of the identity of a host -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/HostId.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace chimera::runtime {
namespace {

TEST(HostId, HasTheNameAndTheBoot) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(hostId(), std::string(name) + "/" + bootId());
  EXPECT_EQ(bootId().size(), 36u); // a UUID
  EXPECT_EQ(hostId().find(' '), std::string::npos);
}

} // namespace
} // namespace chimera::runtime
