//===- AccountsTest.cpp - One rank writes the accounts of all hosts -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Messages.h"
#include "runtime/control/tcp/Control.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/channel/LocalPeerTables.h"

#include <algorithm>
#include <barrier>
#include <gtest/gtest.h>
#include <iostream>
#include <latch>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;

namespace {
/// Four ranks on two hosts, as threads. An account is the report of a host on
/// its ranks. One rank must write the accounts of all hosts. `written` has the
/// accounts that each rank has written.
class Accounts : public testing::Test {
protected:
  static constexpr uint32_t kRanks = 4;

  /// Each rank calls `body` with its control, destroys the control, and calls
  /// `onEnd` with its number.
  void onEachRank(
      const std::function<void(TcpControl &)> &body,
      const std::vector<uint32_t> &leaders = {0, 0, 2, 2},
      const std::function<void(uint32_t)> &onEnd = [](uint32_t) {}) {
    LocalPeerTables peerTables(kRanks);
    std::barrier met(kRanks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        tcp::PeerTable peerTable = peerTables.of(rank);
        peerTable.leaders = leaders;
        {
          TcpControl control(peerTable, std::move(peerTables.listeners[rank]),
                             1h);
          barrier(control, kPatience, "all ranks");
          met.arrive_and_wait(); // abort only after all have left the barrier
          control.setReportWriter([&, rank](const auto &accounts) {
            std::lock_guard lock(mutex);
            for (const std::vector<std::byte> &bytes : accounts)
              written[rank].emplace_back(
                  reinterpret_cast<const char *>(bytes.data()), bytes.size());
            std::ranges::sort(written[rank]);
          });
          body(control);
        }
        onEnd(rank);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Calls `run`, which returns an error or an empty string. Calls it again, up
  /// to 8 times in all, if it returned an error: an account counts as lost
  /// after 0.9 s, which may also happen on a busy machine. Prints each error.
  void attempt(const std::function<std::string()> &run) {
    std::string wrong = "not called";
    for (int i = 0; i < 8 && !wrong.empty(); ++i) {
      for (std::vector<std::string> &each : written)
        each.clear();
      wrong = run();
      if (!wrong.empty())
        std::cout << "attempt " << i + 1 << ": " << wrong << std::endl;
    }
    EXPECT_EQ(wrong, "");
  }

  static bool submitAccount(Control &control, const std::string &text,
                            uint32_t ranks = 2) {
    return control.submitAccount(std::as_bytes(std::span(text)), ranks);
  }

  std::mutex mutex;
  std::vector<std::string> written[kRanks];
};

TEST_F(Accounts, TheFirstRankWritesThoseOfAllHosts) {
  const std::vector<std::string> both = {"host 0", std::string(1 << 20, 'x')};
  attempt([&]() -> std::string {
    std::latch handedIn(2);
    bool ofFirst = false, ofSecond = false;
    onEachRank([&](TcpControl &control) {
      // Any rank of a host may submit the host's account. An account may have
      // any size.
      if (control.rank() == 1)
        ofFirst = submitAccount(control, "host 0");
      if (control.rank() == 3) {
        // The abort ends all operations except accounts, also the barrier of
        // the other ranks.
        control.abort("rank 3 failed");
        ofSecond = submitAccount(control, both[1]);
      }
      if (control.rank() % 2 == 0)
        handedIn.wait();
      else
        handedIn.count_down();
    });
    for (uint32_t rank : {1, 2, 3})
      EXPECT_TRUE(written[rank].empty());
    return ofFirst && ofSecond && written[0] == both ? "" : "one is missing";
  });
}

TEST_F(Accounts, ASilentHostDelaysNobodyForLong) {
  attempt([&]() -> std::string {
    bool ofFirst = false, ofSecond = true;
    onEachRank([&](TcpControl &control) {
      if (control.rank() == 0) {
        ofFirst = submitAccount(control, "host 0");
      } else {
        std::this_thread::sleep_for(1500ms);
        // This account comes too late. submitAccount returns false, so rank 2
        // must write the account itself.
        if (control.rank() == 2)
          ofSecond = submitAccount(control, "host 1");
        std::this_thread::sleep_for(200ms);
      }
      std::this_thread::sleep_for(1s);
    });
    return ofFirst && !ofSecond &&
                   written[0] == std::vector<std::string>{"host 0"}
               ? ""
               : "expected host 0 alone";
  });
}

TEST_F(Accounts, WhereTheFirstRankIsLostAnotherHostWrites) {
  attempt([&]() -> std::string {
    std::latch handedIn(2);
    bool ofFirst = false, ofSecond = false;
    onEachRank([&](TcpControl &control) {
      if (control.rank() == 0)
        return;
      std::this_thread::sleep_for(300ms); // until rank 0 has ended
      if (control.rank() == 1)
        ofFirst = submitAccount(control, "host 0");
      if (control.rank() == 3)
        ofSecond = submitAccount(control, "host 1");
      if (control.rank() == 2)
        handedIn.wait();
      else
        handedIn.count_down();
    });
    return ofFirst && ofSecond &&
                   written[2] == std::vector<std::string>{"host 0", "host 1"}
               ? ""
               : "one is missing";
  });
}

TEST_F(Accounts, WhereNobodyWritesEachHostDoes) {
  std::latch hasNoWriter(1), isAnswered(1);
  onEachRank([&](TcpControl &control) {
    if (control.rank() == 0) {
      control.setReportWriter({});
      hasNoWriter.count_down();
    }
    if (control.rank() == 2) {
      hasNoWriter.wait();
      EXPECT_FALSE(submitAccount(control, "host 1"));
      isAnswered.count_down();
    } else {
      isAnswered.wait();
    }
  });
  // submitAccount also fails if all ranks that could write have ended.
  std::latch haveEnded(kRanks - 1);
  onEachRank(
      [&](TcpControl &control) {
        if (control.rank() != 1)
          return;
        haveEnded.wait();
        EXPECT_FALSE(submitAccount(control, "host 0"));
      },
      {0, 0, 2, 2},
      [&](uint32_t rank) {
        if (rank != 1)
          haveEnded.count_down();
      });
}

TEST_F(Accounts, OneHostWritesByItself) {
  onEachRank(
      [&](TcpControl &control) {
        EXPECT_FALSE(submitAccount(control, "host", 4));
      },
      {0, 0, 0, 0});
  for (const auto &each : written)
    EXPECT_TRUE(each.empty());
}
} // namespace
