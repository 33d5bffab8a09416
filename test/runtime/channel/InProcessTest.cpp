//===- InProcessTest.cpp - Messages that are not copied -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/InProcess.h"
#include "runtime/device/Host.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
struct Pair {
  Pair() {
    for (Block *block : {&out, &in})
      block->reset(static_cast<std::byte *>(std::aligned_alloc(64, 64)));
    std::memset(out.get(), 1, 64);
    std::memset(in.get(), 2, 64);
  }

  std::vector<std::unique_ptr<Channels>> channels = makeInProcessChannels(2);
  Block out, in;
};

TEST(InProcess, BlocksAreExchangedAndNotCopied) {
  for (bool sendFirst : {false, true}) {
    Pair pair;
    const std::byte *sent = pair.out.get(), *old = pair.in.get();
    std::unique_ptr<Request> send, receive;
    if (sendFirst)
      send = pair.channels[0]->postSendBlock(1, pair.out, 64);
    receive = pair.channels[1]->postReceiveBlock(0, pair.in, 64);
    if (!sendFirst)
      send = pair.channels[0]->postSendBlock(1, pair.out, 64);
    pair.channels[0]->wait(hostQueue(), std::move(send), 1s);
    pair.channels[1]->wait(hostQueue(), std::move(receive), 1s);
    EXPECT_EQ(pair.in.get(), sent);
    EXPECT_EQ(pair.out.get(), old);
    EXPECT_EQ(pair.in.get()[63], std::byte(1));
  }
}

TEST(InProcess, CopiesIfOneEndKeepsItsBlock) {
  for (bool movesSender : {false, true}) {
    Pair pair;
    const std::byte *sent = pair.out.get(), *old = pair.in.get();
    auto send = movesSender
                    ? pair.channels[0]->postSendBlock(1, pair.out, 64)
                    : pair.channels[0]->postSend(1, {pair.out.get(), 64});
    auto receive = movesSender
                       ? pair.channels[1]->postReceive(0, {pair.in.get(), 64})
                       : pair.channels[1]->postReceiveBlock(0, pair.in, 64);
    pair.channels[0]->wait(hostQueue(), std::move(send), 1s);
    pair.channels[1]->wait(hostQueue(), std::move(receive), 1s);
    EXPECT_EQ(pair.in.get(), old);
    EXPECT_EQ(pair.out.get(), sent);
    EXPECT_EQ(pair.in.get()[63], std::byte(1));
  }
}

TEST(InProcess, ACancelledEndKeepsItsBlock) {
  Pair pair;
  const std::byte *sent = pair.out.get();
  pair.channels[0]->postSendBlock(1, pair.out, 64).reset();
  EXPECT_EQ(pair.out.get(), sent);
  // The dropped message must not be delivered: the next receive waits for the
  // next send.
  auto receive = pair.channels[1]->postReceiveBlock(0, pair.in, 64);
  EXPECT_THROW(pair.channels[1]->wait(hostQueue(), std::move(receive), 20ms),
               WaitError);
}
} // namespace
