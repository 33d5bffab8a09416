//===- AccountsTest.cpp - One rank writes what all hosts say --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Messages.h"
#include "runtime/control/tcp/Control.h"
#include "test/runtime/channel/LocalBooks.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
/// Four ranks on hosts of two, as threads, and what each of them writes for
/// all.
class Accounts : public testing::Test {
protected:
  static constexpr uint32_t kRanks = 4;

  void onEachRank(const std::function<void(TcpControl &)> &body,
                  const std::vector<uint32_t> &leaders = {0, 0, 2, 2}) {
    LocalBooks books(kRanks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        tcp::Book book = books.of(rank);
        book.leaders = leaders;
        TcpControl control(book, std::move(books.listeners[rank]), 1h);
        meet(control, 1min, "all ranks");
        control.onAccounts([&, rank](const auto &accounts) {
          std::lock_guard lock(mutex);
          for (const std::vector<std::byte> &bytes : accounts)
            written[rank].emplace_back(
                reinterpret_cast<const char *>(bytes.data()), bytes.size());
          std::ranges::sort(written[rank]);
        });
        body(control);
        control.onAccounts({});
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  static bool handIn(Control &control, const std::string &text,
                     uint32_t ranks = 2) {
    return control.handIn(std::as_bytes(std::span(text)), ranks);
  }

  std::mutex mutex;
  std::vector<std::string> written[kRanks];
};

TEST_F(Accounts, TheFirstRankWritesThoseOfAllHosts) {
  auto begin = std::chrono::steady_clock::now();
  onEachRank([&](TcpControl &control) {
    // Any rank of a host does it. An account may be of any size.
    if (control.rank() == 1) {
      EXPECT_TRUE(handIn(control, "host 0"));
    }
    if (control.rank() == 3) {
      // Which ends everything else, the meeting of the others too.
      std::this_thread::sleep_for(100ms);
      control.abort("rank 3 failed");
      EXPECT_TRUE(handIn(control, std::string(1 << 20, 'x')));
    }
    if (control.rank() % 2 == 0)
      std::this_thread::sleep_for(400ms);
  });
  EXPECT_EQ(written[0],
            (std::vector<std::string>{"host 0", std::string(1 << 20, 'x')}));
  for (uint32_t rank : {1, 2, 3})
    EXPECT_TRUE(written[rank].empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST_F(Accounts, NobodyWaitsForLongForAHostThatSaysNothing) {
  onEachRank([&](TcpControl &control) {
    if (control.rank() == 0) {
      EXPECT_TRUE(handIn(control, "host 0"));
    } else {
      std::this_thread::sleep_for(1500ms);
      // Too late: it writes its own.
      if (control.rank() == 2) {
        EXPECT_FALSE(handIn(control, "host 1"));
      }
      std::this_thread::sleep_for(200ms);
    }
    std::this_thread::sleep_for(1s);
  });
  EXPECT_EQ(written[0], std::vector<std::string>{"host 0"});
}

TEST_F(Accounts, WhereTheFirstRankIsLostAnotherHostWrites) {
  onEachRank([&](TcpControl &control) {
    if (control.rank() == 0)
      return;
    std::this_thread::sleep_for(300ms);
    if (control.rank() == 1) {
      EXPECT_TRUE(handIn(control, "host 0"));
    }
    if (control.rank() == 3) {
      EXPECT_TRUE(handIn(control, "host 1"));
    }
    if (control.rank() == 2)
      std::this_thread::sleep_for(1500ms);
  });
  EXPECT_EQ(written[2], (std::vector<std::string>{"host 0", "host 1"}));
}

TEST_F(Accounts, WhereNobodyWritesEachHostDoes) {
  onEachRank([&](TcpControl &control) {
    if (control.rank() == 0)
      control.onAccounts({});
    if (control.rank() == 2) {
      EXPECT_FALSE(handIn(control, "host 1"));
    } else {
      std::this_thread::sleep_for(2s);
    }
  });
  // And where the only other host is gone.
  onEachRank([&](TcpControl &control) {
    if (control.rank() != 1)
      return;
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(handIn(control, "host 0"));
  });
}

TEST_F(Accounts, OneHostWritesByItself) {
  onEachRank(
      [&](TcpControl &control) { EXPECT_FALSE(handIn(control, "host", 4)); },
      {0, 0, 0, 0});
  for (const auto &each : written)
    EXPECT_TRUE(each.empty());
}
} // namespace
