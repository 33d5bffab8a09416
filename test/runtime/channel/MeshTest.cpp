//===- MeshTest.cpp - Unknown connections, and slow ranks -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ConformanceTest.cpp tests the messages themselves.
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Deadline.h"
#include "test/runtime/Timeouts.h"
#include "test/runtime/channel/LocalPeerTables.h"

#include <algorithm>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <iostream>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace chimera::runtime;
using namespace chimera::runtime::test;
using namespace std::chrono_literals;
using tcp::Mesh;

namespace {
/// The first bytes of a connection. A rank sends them, and the other rank
/// answers with its own.
struct Greeting {
  uint64_t magic = 0x334d454843, secret = 42, rank = 0;
};

/// Two ranks. Processes that do not belong to the job (strangers) also connect
/// to their ports.
class MeshOfTwo : public testing::TestWithParam<Hosts> {
protected:
  MeshOfTwo() : peerTables(2, GetParam()) {
    for (uint32_t rank : {0, 1}) {
      ports[rank] = peerTables.listeners[rank].port;
      meshes[rank] = std::make_unique<Mesh>(
          peerTables.of(rank), std::move(peerTables.listeners[rank]), 1h,
          [this](uint32_t, const std::string &how) {
            std::lock_guard lock(mutex);
            losses.push_back(how);
          });
    }
  }
  ~MeshOfTwo() override {
    EXPECT_EQ(losses, std::vector<std::string>{});
    for (auto &mesh : meshes)
      mesh.reset();
  }

  Socket knock(uint32_t rank) {
    return GetParam() == Hosts::One
               ? connectLocally(ports[rank])
               : connectTo("127.0.0.1", ports[rank], kPatience);
  }

  /// Whether the mesh closes a connection before `timeout`.
  static bool isClosed(const Socket &socket,
                       std::chrono::milliseconds timeout) {
    pollfd entry{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    std::byte byte;
    return poll(&entry, 1, static_cast<int>(timeout.count())) == 1 &&
           recv(socket.fd(), &byte, 1, 0) <= 0;
  }

  size_t countLosses() {
    std::lock_guard lock(mutex);
    return losses.size();
  }

  void expectToTalk() {
    uint64_t said = 42, heard = 0;
    auto receive =
        meshes[1]->receive(0, 7, std::as_writable_bytes(std::span(&heard, 1)));
    auto send = meshes[0]->send(1, 7, std::as_bytes(std::span(&said, 1)));
    meshes[1]->wait(receive, kPatience);
    meshes[0]->wait(send, kPatience);
    EXPECT_EQ(heard, 42u);
  }

  LocalPeerTables peerTables;
  uint16_t ports[2];
  std::mutex mutex;
  std::vector<std::string> losses; // the texts that the meshes passed to onLost
  std::unique_ptr<Mesh> meshes[2];
};

INSTANTIATE_TEST_SUITE_P(, MeshOfTwo,
                         testing::Values(Hosts::One, Hosts::Several),
                         testing::PrintToStringParamName());

TEST_P(MeshOfTwo, ASilentStrangerIsDisconnected) {
  std::vector<Socket> strangers;
  for (int i = 0; i < 150; ++i)
    strangers.push_back(knock(1));
  expectToTalk();
  // The mesh keeps at most 64 connections of strangers, the newest, and each
  // for 5 s. So when it has closed one connection, it must close all older ones
  // in the same iteration of its thread's loop.
  Deadline deadline(kPatience);
  for (bool areAllClosed = false; !areAllClosed && !deadline.passed();) {
    bool isAnyClosed = false;
    areAllClosed = true;
    for (auto each = strangers.rbegin(); each != strangers.rend(); ++each) {
      bool closed = isClosed(*each, isAnyClosed ? kPatience : 0s);
      EXPECT_TRUE(closed || !isAnyClosed);
      isAnyClosed |= closed;
      areAllClosed &= closed;
    }
    std::this_thread::sleep_for(1ms);
  }
  for (const Socket &each : strangers)
    EXPECT_TRUE(isClosed(each, 0ms));
}

TEST_P(MeshOfTwo, AConnectionWithAnotherGreetingIsRefused) {
  std::vector<std::byte> garbage(4096, std::byte('G'));
  Socket stranger = knock(1);
  sendBytes(stranger, garbage, 1s);
  EXPECT_TRUE(isClosed(stranger, kPatience));
  // Half of a rank's greeting.
  Greeting greeting;
  auto bytes = std::as_bytes(std::span(&greeting, 1));
  Socket half = knock(1);
  sendBytes(half, bytes.first(12), 1s);
  // A complete greeting with a wrong secret, with a rank that does not exist,
  // or with the rank of the receiver itself.
  auto isRefused = [&](std::chrono::milliseconds timeout) {
    Socket socket = knock(1);
    sendBytes(socket, bytes, kPatience);
    return isClosed(socket, timeout);
  };
  EXPECT_FALSE(isRefused(2s));
  greeting.secret = 43;
  EXPECT_TRUE(isRefused(kPatience));
  greeting = {.rank = 2};
  EXPECT_TRUE(isRefused(kPatience));
  greeting = {.rank = 1};
  EXPECT_TRUE(isRefused(kPatience));
  expectToTalk();
  EXPECT_TRUE(isClosed(half, kPatience));
}

// A rank on the same host is reached by its Unix socket. A rank on another host
// is reached only by its address.
TEST_P(MeshOfTwo, ARankOfTheHostIsReachedWithoutAnAddress) {
  tcp::PeerTable peerTable = peerTables.of(0);
  peerTable.addresses[1].hosts.clear();
  Mesh other(peerTable, Listener(), 1h, [](uint32_t, const std::string &) {});
  if (GetParam() == Hosts::One)
    other.connectToPeer(1, kPatience);
  else
    EXPECT_THROW(other.connectToPeer(1, 1s), std::runtime_error);
  EXPECT_EQ(other.isConnectedTo(1), GetParam() == Hosts::One);
}

// A rank that tries to connect to a stopped rank gives up and tries again. When
// the stopped rank continues, it finds the abandoned connections.
TEST_P(MeshOfTwo, AnAbandonedConnectionIsNotAnError) {
  Greeting greeting;
  for (int i = 0; i < 5; ++i) {
    Socket givenUp = knock(1);
    sendBytes(givenUp, std::as_bytes(std::span(&greeting, 1)), 1s);
  }
  std::this_thread::sleep_for(200ms);
  expectToTalk();
  EXPECT_FALSE(meshes[1]->isGone(0));
}

// Rank 1 has failed and has ended, so it cannot be reached. This rank reads the
// reason of the failure only later. It must report this reason. It waits half a
// second for it. On a busy machine the reason may come later, so the test tries
// several times.
TEST_P(MeshOfTwo, ARankThatCannotBeReachedMayHaveSaidWhy) {
  tcp::PeerTable peerTable = peerTables.of(0);
  peerTable.addresses[1] = {}; // so rank 1 cannot be reached
  std::string heard;
  for (int attempt = 0; attempt < 20 && heard.empty(); ++attempt) {
    Mesh other(peerTable, Listener(), 1h, [](uint32_t, const std::string &) {});
    EXPECT_THROW(other.connectToPeer(1, 1s), std::runtime_error);
    std::jthread late([&] {
      std::this_thread::sleep_for(50ms);
      other.abort("rank 1 failed: no data");
    });
    try {
      other.connectToPeer(1, kPatience);
      FAIL() << "expected a WaitError";
    } catch (const WaitError &error) {
      EXPECT_EQ(error.reason, WaitError::Reason::Aborted);
      heard = error.what();
    } catch (const std::runtime_error &error) {
      // It cannot be reached, and the reason came too late.
      std::cout << "attempt " << attempt + 1 << ": " << error.what()
                << std::endl;
    }
  }
  EXPECT_EQ(heard, "aborted: rank 1 failed: no data");
}

/// `sayAndGo` makes rank 0 send a message on stream 7 and end. Rank 1 processes
/// this message only after 200 ms, and meanwhile waits for another message.
/// This wait must fail with the reason that rank 0 sent.
void expectToHearWhy(Mesh &own, const std::function<void()> &sayAndGo) {
  std::byte news{}, message{};
  own.receive(0, 7, {&news, 1}, [&own] {
    std::this_thread::sleep_for(200ms);
    own.abort("rank 0 failed: no data");
  });
  sayAndGo();
  try {
    own.wait(own.receive(0, 8, {&message, 1}), kPatience);
    FAIL() << "expected a WaitError";
  } catch (const WaitError &error) {
    EXPECT_STREQ(error.what(), "aborted: rank 0 failed: no data");
  }
}

TEST_P(MeshOfTwo, ALeavingRanksReasonIsReported) {
  expectToHearWhy(*meshes[1], [&] {
    std::byte news{};
    meshes[0]->send(1, 7, {&news, 1});
    meshes[0].reset();
  });
}

TEST_P(MeshOfTwo, ARankThatIsLostMayHaveSaidWhy) {
  expectToHearWhy(*meshes[1], [&] {
    Greeting greeting, answer;
    struct {
      uint64_t kind = 0, stream = 7, bytes = 1;
      std::byte news{};
    } frame;
    Socket rank = knock(1);
    sendBytes(rank, std::as_bytes(std::span(&greeting, 1)), kPatience);
    receiveBytes(rank, std::as_writable_bytes(std::span(&answer, 1)),
                 kPatience);
    sendBytes(rank, std::as_bytes(std::span(&frame, 1)).first(25), kPatience);
  });
  for (int i = 0; i < 10000 && countLosses() == 0; ++i)
    std::this_thread::sleep_for(10ms);
  std::lock_guard lock(mutex);
  EXPECT_EQ(std::exchange(losses, {}),
            std::vector<std::string>{"has ended (its connection was closed)"});
}

// Rank 0 connects before many strangers, while the thread of rank 1's mesh is
// blocked as in a stopped process. When the thread continues, it must accept
// rank 0.
TEST_P(MeshOfTwo, ARankThatWasFirstStaysBeforeManyStrangers) {
  std::promise<void> isHeldUp, goOn;
  std::byte word{}, heardWord{};
  // Block the thread of rank 1's mesh, so that rank 1 cannot answer during this
  // call.
  auto heard = meshes[1]->receive(0, 5, {&heardWord, 1}, [&] {
    isHeldUp.set_value();
    goOn.get_future().wait();
  });
  meshes[0]->send(1, 5, {&word, 1});
  isHeldUp.get_future().wait();
  Greeting greeting, answer;
  Socket first = knock(1);
  sendBytes(first, std::as_bytes(std::span(&greeting, 1)), kPatience);
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(knock(1));
  goOn.set_value();
  EXPECT_NO_THROW(receiveBytes(
      first, std::as_writable_bytes(std::span(&answer, 1)), kPatience));
  EXPECT_EQ(answer.rank, 1u);
}

// The callback runs after the receive is complete. So the mesh must wake a rank
// that waits for an effect of the callback once more. Otherwise this rank would
// look again only 50 ms after its last look. Here the callback has its effect
// just after a look. On a busy machine a rank that is woken may still run late,
// so only 10 of 300 waits must end soon. One would not be enough: something
// else may wake a rank by chance.
TEST_P(MeshOfTwo, AConnectionWakesItsWaiter) {
  using Clock = std::chrono::steady_clock;
  auto isWokenSoon = [&] {
    std::atomic<bool> hasBegun{false}, wasCalled{false};
    std::atomic<int> looks{0};
    Clock::time_point called;
    std::byte word{}, heard{};
    meshes[1]->receive(0, 5, {&heard, 1}, [&] {
      hasBegun = true;
      for (const int seen = looks; looks == seen;)
        std::this_thread::sleep_for(1ms);
      called = Clock::now();
      wasCalled = true;
    });
    meshes[0]->send(1, 5, {&word, 1});
    // So the thread of the mesh runs the callback, and not this thread in its
    // wait.
    while (!hasBegun)
      std::this_thread::sleep_for(1ms);
    meshes[1]->waitUntil(
        [&] {
          ++looks;
          return wasCalled.load();
        },
        kPatience, [] { return "the call"; });
    return Clock::now() - called < 25ms;
  };
  int early = 0, late = 0;
  while (early < 10 && early + late < 300)
    ++(isWokenSoon() ? early : late);
  std::cout << late << " of " << early + late << " waits ended late"
            << std::endl;
  EXPECT_EQ(early, 10);
}

TEST_P(MeshOfTwo, SurvivesStrangersAtTheFileLimit) {
  rlimit before{}, few{};
  getrlimit(RLIMIT_NOFILE, &before);
  expectToTalk();
  // The strangers' sockets are in this process, too. So the mesh reaches the
  // limit of open files at the same time as the strangers.
  Socket probe = knock(0);
  few = before;
  few.rlim_cur = static_cast<rlim_t>(probe.fd()) + 60;
  setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Socket> strangers;
  try {
    for (int i = 0; i < 100; ++i)
      strangers.push_back(knock(1));
  } catch (const std::runtime_error &) {
    // No file descriptor is left, so no more strangers can connect.
  }
  EXPECT_GT(strangers.size(), 10u);
  // Leave the mesh one file. Without a file and without a stranger's connection
  // for 2 s, it would rightly fail.
  if (!strangers.empty())
    strangers.erase(strangers.begin());
  expectToTalk();
  strangers.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  std::this_thread::sleep_for(400ms);
  expectToTalk();
}

// This process has too many open files, and the mesh has no stranger's
// connection that it could close.
TEST_P(MeshOfTwo, ReportsTheFileLimit) {
  expectToTalk();
  Socket knocker(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{}, none{};
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  {
    Socket lowest(dup(knocker.fd()));
    none.rlim_cur = static_cast<rlim_t>(lowest.fd());
  }
  setrlimit(RLIMIT_NOFILE, &none);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(ports[1]);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(
      connect(knocker.fd(), reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
  for (Deadline deadline(kPatience); countLosses() == 0 && !deadline.passed();)
    std::this_thread::sleep_for(10ms);
  setrlimit(RLIMIT_NOFILE, &before);
  std::lock_guard lock(mutex);
  EXPECT_EQ(std::exchange(losses, {}),
            std::vector<std::string>{
                "cannot move messages: cannot accept a connection: Too many "
                "open files: raise ulimit -n"});
}
} // namespace
