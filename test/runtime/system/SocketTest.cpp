//===- SocketTest.cpp - Connections between ranks -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Socket.h"

#include <gtest/gtest.h>
#include <optional>
#include <sys/socket.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Accepts a connection at `listening`. Expects that bytes that are sent from
/// `from` arrive there.
void expectToCarry(const Socket &from, const Socket &listening) {
  ASSERT_TRUE(from);
  Socket to(accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(to);
  const std::vector<std::byte> sent(1000, std::byte{42});
  std::vector<std::byte> received(sent.size());
  sendBytes(from, sent, 30s);
  receiveBytes(to, received, 30s);
  EXPECT_EQ(received, sent);
}

TEST(Listener, IsReachedByAnAddressAndLocally) {
  Listener listener;
  expectToCarry(connectTo("127.0.0.1", listener.port, 30s), listener.socket);
  ASSERT_TRUE(listener.local);
  expectToCarry(connectLocally(listener.port), listener.local);
}

TEST(Listener, IsReachedByANameWhoseNumericAddressIsKnown) {
  Listener listener;
  const Socket byName = connectTo("localhost", listener.port, 30s);
  const std::string number = peerAddressOf(byName);
  EXPECT_TRUE(number == "127.0.0.1" || number == "::1") << number;
  expectToCarry(byName, listener.socket);
  expectToCarry(connectTo(number, listener.port, 30s), listener.socket);
  EXPECT_EQ(peerAddressOf(connectLocally(listener.port)), "");
}

TEST(Listener, IsNotReachedLocallyByThePortOfAnother) {
  Listener one, other;
  Socket connection = connectLocally(other.port);
  EXPECT_LT(accept4(one.local.fd(), nullptr, nullptr, SOCK_NONBLOCK), 0);
  expectToCarry(connection, other.local);
}

TEST(Listener, LeavesNoNameWhenItIsGone) {
  std::optional<Listener> listener(std::in_place);
  uint16_t port = listener->port;
  listener.reset();
  EXPECT_FALSE(connectLocally(port));
}
} // namespace
