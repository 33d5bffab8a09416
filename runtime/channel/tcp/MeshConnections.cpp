//===- MeshConnections.cpp - Connects and loses ranks ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include "runtime/system/Deadline.h"
#include "runtime/system/ErrorText.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/socket.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {
constexpr milliseconds kDial = 5s;
constexpr milliseconds kHearing = 500ms;
template <typename T> std::span<const std::byte> bytesOf(const T &value) {
  return std::as_bytes(std::span(&value, 1));
}
} // namespace

uint32_t Mesh::checked(uint32_t peer) const {
  if (peer >= ranks())
    throw std::invalid_argument("expected a rank below " +
                                std::to_string(ranks()) + ", got " +
                                std::to_string(peer));
  return peer;
}

/// Whether the other end of a new connection sends something or closes it
/// before `patience` passes. Throws WaitError if the run is aborted first.
bool Mesh::answers(const Socket &socket, milliseconds patience) const {
  constexpr int kLook = 50; // milliseconds
  pollfd answer{.fd = socket.fd(), .events = POLLIN, .revents = 0};
  for (Deadline deadline(patience); poll(&answer, 1, kLook) <= 0;) {
    std::lock_guard lock(mutex);
    throwIfAborted();
    if (deadline.passed())
      return false;
  }
  return true;
}

/// Connects to a rank. Tries all its addresses, since some may belong to
/// another host. A rank of this host is reached through its Unix socket, unless
/// it is in a container with its own network.
Socket Mesh::dial(uint32_t peer, milliseconds connecting,
                  milliseconds answering) const {
  const Address &address = peerTable.addresses[peer];
  std::string reasons;
  bool isSilent = false;
  // Returns whether the other end is the expected rank.
  auto greets = [&](const Socket &socket) {
    // Only the first address that accepts a connection gets the long timeout,
    // because it is the most likely to belong to the rank.
    milliseconds patience = std::exchange(answering, connecting);
    sendBytes(socket,
              bytesOf(Greeting{kMagic, peerTable.secrets[peerTable.rank],
                               peerTable.rank}),
              connecting);
    Greeting answer{};
    isSilent = !answers(socket, patience);
    if (isSilent)
      throw std::runtime_error("no answer within " +
                               std::to_string(patience.count()) + " ms");
    receiveBytes(socket, std::as_writable_bytes(std::span(&answer, 1)),
                 connecting);
    return answer.magic == kMagic && answer.secret == peerTable.secrets[peer] &&
           answer.rank == peer;
  };
  auto tryOne = [&](const std::string &host, auto connect) -> Socket {
    try {
      if (Socket socket = connect(); !socket || greets(socket))
        return socket;
      throw std::runtime_error(host + " port " + std::to_string(address.port) +
                               ": another program answers");
    } catch (const WaitError &) {
      throw;
    } catch (const std::runtime_error &error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
      return {};
    }
  };
  if (peerTable.leaders.empty() ||
      peerTable.leaders[peer] == peerTable.leaders[peerTable.rank])
    if (Socket socket =
            tryOne("this host's", [&] { return connectLocally(address.port); }))
      return socket;
  // If the rank accepts on its Unix socket but does not answer, its process is
  // stopped. Its other addresses would not answer either.
  const auto &hosts = isSilent ? std::vector<std::string>() : address.hosts;
  for (const std::string &host : hosts)
    if (Socket socket = tryOne(
            host, [&] { return connectTo(host, address.port, connecting); }))
      return socket;
  throw std::runtime_error("cannot reach rank " + std::to_string(peer) + ": " +
                           (reasons.empty() ? "it has no address" : reasons));
}

/// Like dial. If dial fails, waits a moment (kHearing) for an abort: a rank
/// that failed tells all others why before it ends, but its message may arrive
/// after the connection has failed.
Socket Mesh::connectOrReportAbort(uint32_t peer, milliseconds connecting,
                                  milliseconds answering) {
  try {
    return dial(peer, connecting, answering);
  } catch (const std::runtime_error &) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kHearing, [&] { return aborted.has_value(); });
    throwIfAborted();
    throw;
  }
}

/// Called by the rank's own threads. The mesh's thread must not call it: it
/// must not wait for a single rank.
void Mesh::connectToPeer(uint32_t peer, milliseconds timeout) {
  connectToPeer(peer, timeout, timeout);
}

/// Connects, and waits for an answer for the time that a rank may be silent. A
/// stopped process has not failed: it answers when it continues.
void Mesh::connectWithinSilence(uint32_t peer) {
  connectToPeer(peer, kDial, silence);
}

void Mesh::connectToPeer(uint32_t peer, milliseconds connecting,
                         milliseconds answering) {
  {
    std::lock_guard lock(mutex);
    if (outgoing.count(peer))
      return;
  }
  Socket socket = connectOrReportAbort(peer, connecting, answering);
  std::lock_guard lock(mutex);
  Outgoing &connection = outgoing[peer];
  if (connection.socket)
    return; // another thread was faster
  connection.socket = std::move(socket);
  // The first frame confirms the connection (isConfirmed).
  connection.frames.push_back({{Heartbeat, 0, 0}, nullptr});
  Done none;
  flush(connection, peer, none); // so that the next send can write at once
}

bool Mesh::isConnectedTo(uint32_t peer) const {
  std::lock_guard lock(mutex);
  return outgoing.count(peer) != 0;
}

bool Mesh::isGone(uint32_t peer) const {
  std::lock_guard lock(mutex);
  return gone.count(peer) != 0;
}

void Mesh::watch(uint32_t peer) {
  connectWithinSilence(checked(peer));
  std::lock_guard lock(mutex);
  watched.try_emplace(peer, silence);
  wake();
}

/// The connection on which `peer` sends, or null if it has not connected yet.
Mesh::Incoming *Mesh::connectionFrom(uint32_t peer) {
  auto found = std::ranges::find_if(incoming, [&](const Incoming &each) {
    return each.from == peer && each.isConfirmed;
  });
  return found == incoming.end() ? nullptr : &*found;
}

void Mesh::lose(uint32_t peer, const std::string &how) {
  if (isLeaving || gone.count(peer))
    return;
  departures.push_back({peer, how, /*isLoss=*/true});
  watched.erase(peer);
}

/// Called when a connection to a rank has failed, so that nothing more can be
/// sent to the rank.
void Mesh::fail(Outgoing &connection, uint32_t peer, const std::string &how) {
  connection.isBroken = true;
  connection.frames.clear();
  // If `peer` has connected to this rank, readFrom first reads the last
  // messages of `peer`, because they may say why it ended. Then readFrom
  // reports the loss.
  if (!connectionFrom(peer))
    lose(peer, how);
}

/// Answers a greeting. Returns false if the other end is not a rank of this
/// run.
bool Mesh::greet(Incoming &connection) {
  Greeting greeting{};
  std::memcpy(&greeting, connection.greeting.data(), sizeof(greeting));
  if (greeting.magic != kMagic || greeting.rank >= ranks() ||
      greeting.rank == peerTable.rank ||
      greeting.secret != peerTable.secrets[greeting.rank])
    return false;
  connection.from = static_cast<uint32_t>(greeting.rank);
  Greeting answer{kMagic, peerTable.secrets[peerTable.rank], peerTable.rank};
  // Send without waiting: the buffer of a new connection always has room for a
  // few bytes.
  return ::send(connection.socket.fd(), &answer, sizeof(answer),
                MSG_NOSIGNAL) == sizeof(answer);
}

/// Sends heartbeats, and reports ranks that are silent for too long as lost.
void Mesh::keepAlive() {
  auto now = std::chrono::steady_clock::now();
  if (now >= nextSign) {
    nextSign = now + std::clamp<milliseconds>(silence / 4, 10ms, 1s);
    for (auto &[peer, deadline] : watched)
      if (Outgoing &connection = outgoing[peer]; connection.frames.size() < 2)
        connection.frames.push_back({{Heartbeat, 0, 0}, nullptr});
    wake();
  }
  std::vector<uint32_t> silent;
  for (auto &[peer, deadline] : watched)
    if (deadline.passed())
      silent.push_back(peer);
  for (uint32_t peer : silent) {
    char text[64];
    std::snprintf(text, sizeof(text), "was silent for %g s",
                  static_cast<double>(silence.count()) / 1000);
    lose(peer, text);
  }
}

/// Stops accepting connections for kPause. Called after an error such as too
/// many open files. Such an error passes when this process closes a file or
/// drops a stranger, which is a connection that has not sent its greeting. If
/// there is no stranger and the error lasts for kPatience, throws
/// std::runtime_error: ranks that connect would wait in vain.
void Mesh::pauseAccepting(int error, bool hasStrangers) {
  constexpr milliseconds kPause = 200ms, kPatience = 2s;
  nextAccept = std::chrono::steady_clock::now() + kPause;
  if (hasStrangers)
    acceptRetryDeadline.reset();
  else if (!acceptRetryDeadline)
    acceptRetryDeadline.emplace(kPatience);
  else if (acceptRetryDeadline->passed())
    throw std::runtime_error("cannot accept a connection: " + errorText(error));
}

/// Accepts new connections. Connections that never send a greeting must not use
/// up the open files of the process. So at most kMaxStrangers may be open
/// without a greeting. If there are more, the oldest are closed, but only those
/// that an earlier call accepted: they had time to send a greeting.
void Mesh::accept() {
  constexpr std::ptrdiff_t kMaxStrangers = 64;
  auto isStranger = [](const Incoming &each) { return !each.from; };
  std::ptrdiff_t strangers = std::ranges::count_if(incoming, isStranger);
  std::ptrdiff_t earlier = strangers;
  auto closeOldest = [&] {
    if (earlier == 0)
      return false;
    incoming.erase(std::ranges::find_if(incoming, isStranger));
    --earlier, --strangers;
    return true;
  };
  for (const Socket *each : {&listener.local, &listener.socket})
    while (*each && (strangers < kMaxStrangers || closeOldest())) {
      Socket accepted(
          accept4(each->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!accepted) {
        const int error = errno;
        if (error == EMFILE || error == ENFILE || error == ENOBUFS ||
            error == ENOMEM) {
          const bool hasStrangers = strangers > 0;
          while (closeOldest())
            ;
          pauseAccepting(error, hasStrangers);
        }
        break;
      }
      acceptRetryDeadline.reset();
      makeNonBlocking(accepted);
      incoming.emplace_back().socket = std::move(accepted);
      hasNewSocket = true;
      ++strangers;
    }
}
