//===- AccountTest.cpp - A host's report on its ranks ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Account.h"

#include <gtest/gtest.h>

using namespace chimera::runtime;

namespace {
/// The account of a host with ranks 1 and 3 of four. Rank 3 has failed, and
/// rank 1 has died. (An account is a host's report on its ranks.)
Account someAccount() {
  StatusPage page(4);
  page.of(1).enter(Status::Running);
  page.of(1).setPosition(7, 12);
  page.of(1).pid = 4711;
  page.of(3).enter(Status::Saving);
  page.of(3).fail("the disk is full");
  return accountOf(page, {3, 1}, {1}, "ended");
}

TEST(Account, RoundTripsThroughBytes) {
  Account account = Account::parse(someAccount().bytes());
  EXPECT_EQ(account.headline, "ended");
  ASSERT_EQ(account.ranks.size(), 2u);
  const RankState &died = account.ranks[0], &failed = account.ranks[1];
  EXPECT_EQ(died.rank, 1u);
  EXPECT_TRUE(died.isDead);
  EXPECT_EQ(died.pid, 4711);
  EXPECT_EQ(died.step, 7u);
  EXPECT_EQ(died.instruction, 12u);
  EXPECT_EQ(died.state, Status::Running);
  EXPECT_GE(died.since, 0);
  EXPECT_EQ(failed.rank, 3u);
  EXPECT_FALSE(failed.isDead);
  EXPECT_EQ(failed.state, Status::Failed);
  EXPECT_EQ(failed.failedIn, Status::Saving);
  EXPECT_STREQ(failed.reason.data(), "the disk is full");
  EXPECT_EQ(account.find(3), &account.ranks[1]);
  EXPECT_EQ(account.find(2), nullptr);
}

// Accounts come from another process over a network, so their bytes may be
// invalid.
TEST(Account, RefusesInvalidBytes) {
  std::vector<std::byte> bytes = someAccount().bytes();
  size_t headline = std::string("ended").size();
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::span<const std::byte> part(bytes.data(), size);
    if (size + headline >= bytes.size())
      EXPECT_NO_THROW(Account::parse(part)) << size;
    else
      EXPECT_THROW(Account::parse(part), std::invalid_argument) << size;
  }
  for (size_t i = 0; i < 8; ++i)
    bytes[i] = std::byte(0xff);
  EXPECT_THROW(Account::parse(bytes), std::invalid_argument);
}

TEST(Account, MergesHosts) {
  StatusPage page(4);
  page.of(2).setPosition(9, 1);
  std::vector<Account> accounts = {accountOf(page, {0, 2}, {}, ""),
                                   someAccount()};
  Account all = Account::merge(accounts);
  EXPECT_EQ(all.headline, "ended");
  ASSERT_EQ(all.ranks.size(), 4u);
  for (uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(all.ranks[rank].rank, rank);
  EXPECT_EQ(all.find(2)->step, 9u);
  EXPECT_TRUE(all.find(1)->isDead);
}
} // namespace
