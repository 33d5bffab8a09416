//===- PeerExchangeTest.cpp - How ranks find each other -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/control/tcp/PeerExchange.h"

#include "runtime/control/Messages.h"
#include "runtime/control/tcp/Control.h"
#include "runtime/system/Deadline.h"
#include "test/runtime/Timeouts.h"

#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;
using test::kPatience;

namespace {
TEST(PeerEntry, IsReadAsItWasWritten) {
  PeerEntry entry{"host/7",
                  {{"10.0.0.1", "fe80::1"}, 4711},
                  12345678901234567890u,
                  17,
                  4026531836u};
  PeerEntry read = PeerEntry::parse(entry.text());
  EXPECT_EQ(read.host, entry.host);
  EXPECT_EQ(read.address.hosts, entry.address.hosts);
  EXPECT_EQ(read.address.port, 4711);
  EXPECT_EQ(read.secret, entry.secret);
  EXPECT_EQ(read.pid, entry.pid);
  EXPECT_EQ(read.pidNamespace, entry.pidNamespace);
}

TEST(PeerEntry, OfAnotherVersionIsRefused) {
  for (const char *text : {"", "1 host 1 1\n", "2 host x\n"})
    EXPECT_THROW(PeerEntry::parse(text), std::runtime_error) << text;
}

TEST(PeerEntry, OfThisHostHasAnAddress) {
  EXPECT_FALSE(PeerEntry::own(1, "").address.hosts.empty());
  // 127.0.0.1 is an address by which this process reaches itself.
  EXPECT_EQ(PeerEntry::own(1, "127.0.0.1").address.hosts.front(), "127.0.0.1");
}

TEST(PeerInfo, TellsTheRanksOfAHost) {
  std::vector<std::string> entries;
  for (const char *host : {"a", "b", "a", "c", "b"})
    entries.push_back(PeerEntry{host, {{"::1"}, 1}, 9}.text());
  EXPECT_EQ(PeerInfo(2, entries).hostRanks(), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(PeerInfo(4, entries).hostRanks(), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(PeerInfo(4, entries).peerTable.addresses.size(), 5u);
  EXPECT_EQ(PeerInfo(4, entries).peerTable.leaders,
            (std::vector<uint32_t>{0, 1, 0, 3, 1}));
}

TEST(PeerInfo, KnowsTheProcessesOfItsOwnContainerAlone) {
  PeerEntry near = PeerEntry::own(1, ""), far = near, away = near;
  far.host = "elsewhere";
  away.pidNamespace = near.pidNamespace + 1;
  const PeerInfo peerInfo(0,
                          {near.text(), far.text(), away.text(), near.text()});
  ASSERT_EQ(peerInfo.hostProcesses().size(), 1u);
  EXPECT_EQ(peerInfo.hostProcesses().front().rank, 3u);
  EXPECT_EQ(peerInfo.hostProcesses().front().pid, getpid());
}

/// Whether a process listens at a port of this host.
bool isListening(uint16_t port) {
  try {
    connectTo("127.0.0.1", port, kPatience);
    return true;
  } catch (const std::runtime_error &) {
    return false;
  }
}

StoreAddress anyStore() {
  // A port that is free. It is below those that the system gives to the
  // listeners of other tests, and below those that test/e2e/job.py takes.
  std::random_device random;
  uint16_t port = 0;
  do
    port = static_cast<uint16_t>(6100 + random() % 3900);
  while (isListening(port));
  return {"127.0.0.1", port, false, "test/"};
}

// A process can have only one store (the server of the peer exchange). So every
// test has one rank per process.
TEST(Store, GivesEachRankAllEntries) {
  EXPECT_EQ(exchangeAtStore(anyStore(), 0, 1, "alone\n", kPatience),
            std::vector<std::string>{"alone\n"});
}

// Users who start ranks by hand may start a rank twice, or two runs at the same
// port.
TEST(Store, ARankIsOneProcess) {
  StoreAddress address = anyStore();
  auto failureOf = [&](uint32_t rank, const std::string &entry) {
    try {
      exchangeAtStore(address, rank, 3, entry, kPatience);
    } catch (const std::runtime_error &error) {
      return std::string(error.what());
    }
    return std::string("met");
  };
  // The store refuses the second rank 1. Then rank 2 comes, for which the
  // others wait.
  auto failureOfRank1 = [&](const std::string &entry) {
    std::string failure = failureOf(1, entry);
    if (failure != "met")
      failureOf(2, "last\n");
    return failure;
  };
  std::string ofFirst;
  std::thread server([&] { failureOf(0, "server\n"); });
  std::thread first([&] { ofFirst = failureOfRank1("first\n"); });
  std::string ofSecond = failureOfRank1("second\n");
  first.join();
  server.join();
  auto isRefused = [](const std::string &failure) {
    return failure.find(" is another process already: was it started twice") !=
           std::string::npos;
  };
  EXPECT_NE(isRefused(ofFirst), isRefused(ofSecond)) << ofFirst << "\n"
                                                     << ofSecond;
}

/// A store of a launcher: it outlives the ranks, which may start again.
StoreAddress servedStore() {
  StoreAddress address = anyStore();
  exchangeAtStore(address, 0, 1, "server\n", kPatience); // keeps the store
  address.isServed = true;
  address.prefix = "run/";
  return address;
}

/// Starts the ranks of an attempt, `first` half a second before the others.
/// Each gets all entries.
void startAll(const StoreAddress &address, const std::string &attempt,
              uint32_t first) {
  std::vector<std::string> expected;
  for (uint32_t rank = 0; rank < 3; ++rank)
    expected.push_back(attempt + std::to_string(rank) + "\n");
  std::vector<std::thread> ranks;
  auto start = [&](uint32_t rank) {
    ranks.emplace_back([&, rank] {
      EXPECT_EQ(exchangeAtStore(address, rank, 3, expected[rank], kPatience),
                expected)
          << "rank " << rank;
    });
  };
  start(first);
  std::this_thread::sleep_for(500ms);
  for (uint32_t rank = 0; rank < 3; ++rank)
    if (rank != first)
      start(rank);
  for (std::thread &rank : ranks)
    rank.join();
}

TEST(Store, RanksThatALauncherRestartsMeetAgain) {
  const StoreAddress address = servedStore();
  startAll(address, "a", 1);
  startAll(address, "b", 1);
  startAll(address, "c", 0);
  // In this attempt, only rank 0 starts.
  EXPECT_THROW(exchangeAtStore(address, 0, 3, "d0\n", 100ms),
               std::runtime_error);
  startAll(address, "e", 1);
  startAll(address, "f", 2);
}

TEST(Store, AFailureBelongsToOneAttempt) {
  const StoreAddress address = servedStore();
  auto failureOf = [&](uint32_t rank, const std::string &entry) {
    try {
      exchangeAtStore(address, rank, 3, entry, kPatience);
    } catch (const std::runtime_error &error) {
      return std::string(error.what());
    }
    return std::string("met");
  };
  // Before rank 0 has begun the attempt, and after.
  reportFailureAtStore(address, 2, "no text");
  EXPECT_EQ(failureOf(0, "a0\n"), "rank 2 failed: no text");
  startAll(address, "b", 1);
  reportFailureAtStore(address, 2, "no file");
  EXPECT_EQ(failureOf(0, "c0\n"), "rank 2 failed: no file");
  startAll(address, "d", 2);
  reportFailureAtStore(address, 0, "no room");
  EXPECT_EQ(failureOf(1, "e1\n"), "rank 0 failed: no room");
  startAll(address, "f", 0);
}

/// A rank with too many open files cannot use the store. For rank 0, this looks
/// like a rank that never starts.
TEST(Store, ReportsTheFileLimit) {
  rlimit before{}, none{};
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  // Called after 5 s, when the store exists. The exchange takes much longer, so
  // this is called on a busy machine, too.
  auto takeAllFiles = [&](const std::string &) {
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    none.rlim_cur = static_cast<rlim_t>(lowest);
    setrlimit(RLIMIT_NOFILE, &none);
  };
  std::string failure;
  try {
    exchangeAtStore(anyStore(), 0, 2, "alone\n", 20s, takeAllFiles);
  } catch (const std::runtime_error &error) {
    failure = error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(failure.find(": 1, or rank 0 could not accept them: it has too "
                         "many open files, raise ulimit -n"),
            std::string::npos)
      << failure;
}

TEST(Store, RanksThatDoNotComeAreNamed) {
  // A rank that does not reach the store in time has another error.
  const std::string failure = test::retryUntilMessage(
      "did not connect to 127.0.0.1 port", 300ms,
      [](std::chrono::milliseconds timeout) {
        try {
          exchangeAtStore(anyStore(), 0, 3, "alone\n", timeout);
        } catch (const std::runtime_error &error) {
          return std::string(error.what());
        }
        return std::string("met nobody");
      });
  EXPECT_NE(failure.find(": 1, 2"), std::string::npos) << failure;
}

TEST(Store, AnUnreachableStoreIsReportedWithItsAddress) {
  try {
    exchangeAtStore(anyStore(), 1, 2, "alone\n", 300ms);
    FAIL() << "met nobody";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what())
                  .find("cannot meet the other ranks at 127.0.0.1 port"),
              std::string::npos)
        << error.what();
  }
}

/// The error that `rank`, one of three ranks, gets while it waits for the other
/// two, which do not start. `others` reports failures in their place.
std::string
faultWhile(uint32_t rank,
           const std::function<void(const StoreAddress &)> &others) {
  StoreAddress address = anyStore();
  std::string fault;
  std::thread waiting([&] {
    try {
      exchangeAtStore(address, rank, 3, "it is here\n", kPatience);
    } catch (const std::runtime_error &error) {
      fault = error.what();
    }
  });
  // A rank that reports a failure does not wait long for rank 0.
  Deadline deadline(kPatience);
  while (rank == 0 && !isListening(address.port) && !deadline.passed())
    std::this_thread::sleep_for(10ms);
  EXPECT_NO_THROW(others(address));
  waiting.join();
  return fault;
}

TEST(Store, AMissingRankReportsItsError) {
  EXPECT_EQ(faultWhile(0,
                       [](const StoreAddress &address) {
                         reportFailureAtStore(address, 2, "it has no text");
                         reportFailureAtStore(address, 1, "it has none either");
                       }),
            "rank 2 failed: it has no text");
  // If rank 0 cannot join the run, no other rank serves the store. So rank 0
  // serves it while it reports its failure.
  EXPECT_EQ(faultWhile(1,
                       [](const StoreAddress &address) {
                         reportFailureAtStore(address, 0, "it has no text");
                       }),
            "rank 0 failed: it has no text");
}

TEST(Store, AnUnknownHostIsReported) {
  StoreAddress store = anyStore();
  store.host = "no.such.host.invalid";
  for (uint32_t rank : {0, 1})
    try {
      exchangeAtStore(store, rank, 2, "alone\n", 300ms);
      FAIL() << "met somebody";
    } catch (const std::runtime_error &error) {
      EXPECT_EQ(std::string(error.what())
                    .find("cannot meet the other ranks at no.such.host.invalid "
                          "port " +
                          std::to_string(store.port) +
                          ": no.such.host.invalid: "),
                0u)
          << error.what();
    }
}

/// Connects two ranks. The table of rank 0 has the secrets 1 (of rank 0) and 2
/// (of rank 1). The table of rank 1 has the secrets `ofRank0` and `ofRank1`.
/// Returns the error at rank 0.
std::string connectWith(uint64_t ofRank0, uint64_t ofRank1) {
  std::vector<Listener> listeners(2);
  tcp::PeerTable peerTable{0, {}, {1, 2}};
  for (const Listener &listener : listeners)
    peerTable.addresses.push_back({{"127.0.0.1"}, listener.port});
  tcp::PeerTable ofOther{1, peerTable.addresses, {ofRank0, ofRank1}};
  std::string fault;
  std::thread other([&] {
    try {
      TcpControl control(ofOther, std::move(listeners[1]), kPatience);
      barrier(control, kPatience, "the other rank");
    } catch (const std::exception &) {
    }
  });
  try {
    TcpControl control(peerTable, std::move(listeners[0]), kPatience);
    barrier(control, kPatience, "the other rank");
  } catch (const std::exception &error) {
    fault = error.what();
  }
  other.join();
  return fault;
}

TEST(TcpControl, DoesNotListenToAnotherRun) {
  EXPECT_EQ(connectWith(1, 2), "");
  EXPECT_NE(connectWith(3, 4), "");
  // Another process that claims to be rank 1 does not know the secret of rank
  // 1.
  EXPECT_NE(connectWith(1, 3), "");
}
} // namespace
