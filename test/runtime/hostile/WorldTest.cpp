//===- WorldTest.cpp - What breaks a promise is told ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/World.h"

#include "runtime/device/Host.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace chimera::runtime::hostile;

namespace {
constexpr std::chrono::milliseconds kAny(0);

/// Two ranks, each with eight bytes to send and eight to receive into.
struct Pair {
  explicit Pair(bool buffered)
      : world({.ranks = 2, .buffered = buffered, .longestDelay = 5}, random) {}

  std::unique_ptr<Request> send(uint32_t from, uint32_t index) {
    world.enter(from, index, ++time);
    return world.of(from).postSend(1 - from,
                                   std::as_bytes(std::span(&sent, 1)));
  }
  std::unique_ptr<Request> receive(uint32_t to, uint32_t index) {
    world.enter(to, index, ++time);
    return world.of(to).postReceive(
        1 - to, std::as_writable_bytes(std::span(&received, 1)));
  }
  void wait(uint32_t rank, uint32_t index, std::unique_ptr<Request> request) {
    world.enter(rank, 99, *world.completion(rank, index));
    world.of(rank).wait(hostQueue(), std::move(request), kAny);
  }
  std::string failureOf(const std::function<void()> &action) {
    try {
      action();
    } catch (const std::logic_error &error) {
      return error.what();
    }
    return "nothing";
  }

  Random random{7};
  World world;
  Time time = 0;
  uint64_t sent = 0x0123456789abcdef;
  uint64_t received = 42;
};

TEST(HostileWorld, BytesArriveAtTheWaitAndNotBefore) {
  for (bool buffered : {false, true}) {
    Pair pair(buffered);
    auto receive = pair.receive(1, 3);
    EXPECT_NE(pair.received, 42u);
    EXPECT_FALSE(pair.world.completion(1, 3));
    auto send = pair.send(0, 4);
    EXPECT_NE(pair.received, pair.sent);
    pair.wait(1, 3, std::move(receive));
    EXPECT_EQ(pair.received, pair.sent);
    pair.wait(0, 4, std::move(send));
    EXPECT_FALSE(pair.world.completion(0, 4));
  }
}

TEST(HostileWorld, OnlyABufferedSendCompletesWithoutItsReceive) {
  Pair rendezvous(false), buffered(true);
  auto first = rendezvous.send(0, 1), second = buffered.send(0, 1);
  EXPECT_FALSE(rendezvous.world.completion(0, 1));
  EXPECT_TRUE(buffered.world.completion(0, 1));
  auto receive = rendezvous.receive(1, 1);
  EXPECT_TRUE(rendezvous.world.completion(0, 1));
}

TEST(HostileWorld, WhatIsHandedOverIsGarbageFromTheWaitOn) {
  for (bool buffered : {false, true}) {
    Pair pair(buffered);
    Block block(static_cast<std::byte *>(std::aligned_alloc(64, 64)));
    std::memcpy(block.get(), &pair.sent, sizeof(pair.sent));
    auto receive = pair.receive(1, 3);
    pair.world.enter(0, 4, ++pair.time);
    auto send = pair.world.of(0).handOver(1, block, sizeof(pair.sent));
    EXPECT_EQ(std::memcmp(block.get(), &pair.sent, sizeof(pair.sent)), 0);
    pair.wait(0, 4, std::move(send));
    EXPECT_NE(std::memcmp(block.get(), &pair.sent, sizeof(pair.sent)), 0);
    pair.wait(1, 3, std::move(receive));
    EXPECT_EQ(pair.received, pair.sent);
  }
}

TEST(HostileWorld, WritingWhatIsBeingSentIsTold) {
  Pair pair(true);
  auto send = pair.send(0, 4);
  pair.sent = 1;
  EXPECT_EQ(pair.failureOf([&] { pair.wait(0, 4, std::move(send)); }),
            "wrote what the send to rank 1 still read, posted by "
            "instruction 4");
}

TEST(HostileWorld, WritingWhatIsBeingReceivedIsTold) {
  Pair pair(false);
  auto receive = pair.receive(1, 3);
  pair.received = pair.sent;
  auto send = pair.send(0, 4);
  EXPECT_EQ(pair.failureOf([&] { pair.wait(1, 3, std::move(receive)); }),
            "wrote into the receive from rank 0, posted by instruction 3");
}

TEST(HostileWorld, SizesThatDifferAreTold) {
  Pair pair(false);
  auto send = pair.send(0, 4);
  std::array<std::byte, 4> few;
  EXPECT_EQ(pair.failureOf([&] { pair.world.of(1).postReceive(0, few); }),
            "expected a message of 4 bytes from rank 0 to rank 1, got 8");
}

TEST(HostileWorld, AnAllReduceNeedsEveryMemberAndKeepsWhatItSums) {
  Random random(1);
  World world({.ranks = 2, .buffered = false, .longestDelay = 0}, random);
  ReduceGroup group{0, {0, 1, 0}};
  std::array<uint64_t, 3> given = {1, 20, 300};
  std::array<uint64_t, 2> sums = {};
  auto bytes = [](uint64_t &word) {
    return std::as_bytes(std::span(&word, 1));
  };
  auto sum = [&](uint32_t rank) {
    return std::as_writable_bytes(std::span(&sums[rank], 1));
  };
  world.enter(0, 5, 1);
  auto first = world.of(0).startAllReduce(
      group, ElementType::UInt64, {bytes(given[0]), bytes(given[2])}, sum(0));
  EXPECT_FALSE(world.completion(0, 5));
  world.enter(1, 6, 2);
  auto second = world.of(1).startAllReduce(group, ElementType::UInt64,
                                           {bytes(given[1])}, sum(1));
  world.enter(0, 7, *world.completion(0, 5));
  world.of(0).wait(hostQueue(), std::move(first), kAny);
  EXPECT_EQ(sums[0], 321u);
  given[1] = 0;
  EXPECT_THROW(world.of(1).wait(hostQueue(), std::move(second), kAny),
               std::logic_error);
}
} // namespace
