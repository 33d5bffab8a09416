//===- MeshBytes.cpp - Sends and receives bytes of a mesh -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;

/// One call of send or recv moves at most this number of bytes. After this
/// number of bytes from one connection, the next connection is read.
static constexpr size_t kTurn = 256 << 10;

/// Sends as much as the socket accepts.
void Mesh::flush(Outgoing &connection, uint32_t peer, Done &done) {
  while (!connection.frames.empty() && !connection.isBroken) {
    Frame &frame = connection.frames.front();
    ConstBytes payload =
        frame.operation ? ConstBytes(frame.operation->bytes) : ConstBytes();
    uint64_t size = sizeof(Header) + payload.size();
    if (connection.sent < size) {
      iovec parts[2];
      int count = 0;
      uint64_t inPayload = 0;
      if (connection.sent < sizeof(Header))
        parts[count++] = {reinterpret_cast<char *>(&frame.header) +
                              connection.sent,
                          sizeof(Header) - connection.sent};
      else
        inPayload = connection.sent - sizeof(Header);
      if (inPayload < payload.size())
        parts[count++] = {const_cast<std::byte *>(payload.data()) + inPayload,
                          std::min<size_t>(kTurn, payload.size() - inPayload)};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = static_cast<size_t>(count);
      ssize_t sent = sendmsg(connection.socket.fd(), &message, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
          return;
        return fail(connection, peer,
                    std::string("has closed its connection (") +
                        std::strerror(errno) + ")");
      }
      connection.sent += static_cast<uint64_t>(sent);
      if (connection.sent < size)
        continue;
    }
    if (frame.operation)
      finish(*frame.operation, done);
    connection.frames.pop_front();
    connection.sent = 0;
  }
}

/// Reads the credits that have arrived on a connection to `peer`.
void Mesh::readCredits(Outgoing &connection, uint32_t peer) {
  if (connection.isBroken)
    return;
  std::byte bytes[64 * sizeof(Credit)];
  for (;;) {
    ssize_t got = recv(connection.socket.fd(), bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (got <= 0)
      return fail(connection, peer,
                  got == 0 ? "has closed its connection"
                           : std::string("has closed its connection (") +
                                 std::strerror(errno) + ")");
    connection.part.insert(connection.part.end(), bytes, bytes + got);
    ConstBytes left = connection.part;
    for (; left.size() >= sizeof(Credit); left = left.subspan(sizeof(Credit))) {
      Credit more{};
      std::memcpy(&more, left.data(), sizeof(more));
      credit(connection, more);
    }
    connection.part.erase(connection.part.begin(),
                          connection.part.end() -
                              static_cast<std::ptrdiff_t>(left.size()));
    if (static_cast<size_t>(got) < sizeof(bytes))
      return;
  }
}

/// Sends credits until the socket accepts no more.
void Mesh::sendCreditsOn(Incoming &connection) {
  auto all = std::as_bytes(std::span(connection.credits));
  while (connection.creditBytesSent < all.size()) {
    ConstBytes left = all.subspan(connection.creditBytesSent);
    ssize_t sent =
        ::send(connection.socket.fd(), left.data(), left.size(), MSG_NOSIGNAL);
    // If the other end is gone, the next read from this socket reports the
    // error.
    if (sent < 0)
      return;
    connection.creditBytesSent += static_cast<uint64_t>(sent);
  }
  connection.credits.clear();
  connection.creditBytesSent = 0;
}

/// Called after a payload header. Returns false if the message has no receive
/// and is too large to be sent ahead.
bool Mesh::beginPayload(Incoming &connection) {
  connection.got = 0;
  connection.inPayload = true;
  auto inbox =
      inboxes.try_emplace({*connection.from, connection.header.stream}).first;
  uint64_t bytes = connection.header.bytes;
  if (inbox->second.posted.empty()) {
    // No receive is posted, so this message was sent ahead of its credit.
    eraseIfIdle(inbox);
    if (bytes > kSendAhead)
      return false;
    connection.buffered.resize(bytes);
    return true;
  }
  MeshOperation &posted = *inbox->second.posted.front();
  posted.bytesAtOtherEnd = bytes;
  posted.isWrongSize = posted.bytes.size() != bytes;
  connection.isDiscarded = posted.isWrongSize || posted.isGivenUp;
  connection.operation = std::move(inbox->second.posted.front());
  inbox->second.posted.pop_front();
  eraseIfIdle(inbox);
  return true;
}

void Mesh::endPayload(Incoming &connection, Done &done) {
  connection.inPayload = false;
  connection.isDiscarded = false;
  if (connection.operation)
    return finish(*std::exchange(connection.operation, nullptr), done);
  std::vector<std::byte> message = std::exchange(connection.buffered, {});
  // While the payload arrived in a buffer, its receive may have been posted.
  auto inbox =
      inboxes.try_emplace({*connection.from, connection.header.stream}).first;
  if (inbox->second.posted.empty()) {
    inbox->second.buffered.push_back(std::move(message));
    return;
  }
  SharedMeshOperation posted = std::move(inbox->second.posted.front());
  inbox->second.posted.pop_front();
  eraseIfIdle(inbox);
  fill(*posted, message, done);
}

/// The memory for the next bytes that arrive on a connection.
Bytes Mesh::roomOf(Incoming &connection) {
  if (!connection.from) {
    connection.greeting.resize(sizeof(Greeting));
    return Bytes(connection.greeting).subspan(connection.got);
  }
  if (!connection.inPayload) {
    connection.head.resize(sizeof(Header));
    return Bytes(connection.head).subspan(connection.got);
  }
  if (connection.isDiscarded) {
    sink.resize(kSendAhead);
    return Bytes(sink).first(std::min<uint64_t>(
        sink.size(), connection.header.bytes - connection.got));
  }
  return (connection.operation ? connection.operation->bytes
                               : Bytes(connection.buffered))
      .subspan(connection.got);
}

/// Called after a complete greeting, header or payload. Returns false if the
/// other end is not a rank of this run, or violates the protocol.
bool Mesh::endPart(Incoming &connection, Done &done) {
  if (!connection.from) {
    if (!greet(connection))
      return false;
  } else if (connection.inPayload) {
    endPayload(connection, done);
  } else {
    std::memcpy(&connection.header, connection.head.data(), sizeof(Header));
    if (!std::exchange(connection.isConfirmed, true)) {
      // Send credits for receives that were posted before the rank connected.
      for (auto &[key, inbox] : inboxes)
        if (key.first == *connection.from && !inbox.posted.empty())
          announce(key.first, key.second, inbox.posted.size());
      sendCreditsOn(connection);
    }
    if (connection.header.kind == Bye) {
      departures.push_back(
          {*connection.from, "has left the run", /*isLoss=*/false});
      watched.erase(*connection.from);
    }
    if (connection.header.kind == Payload)
      return beginPayload(connection);
  }
  connection.got = 0;
  return true;
}

/// Reads the bytes that have arrived. Returns false if the connection has ended
/// or the other end has violated the protocol.
bool Mesh::readFrom(Incoming &connection, Done &done) {
  for (size_t taken = 0; taken < kTurn;) {
    Bytes room = roomOf(connection);
    if (!room.empty()) {
      room = room.first(std::min(room.size(), kTurn));
      ssize_t got = recv(connection.socket.fd(), room.data(), room.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
      if (got <= 0) {
        // The rank sent no goodbye, so report it as lost. (If it has sent one,
        // `lose` has no effect.) ECONNRESET: the kernel resets the connections
        // of a killed process.
        if (connection.from && connection.isConfirmed)
          lose(*connection.from,
               got == 0 || errno == ECONNRESET
                   ? "has ended (its connection was closed)"
                   : std::string("is lost (") + std::strerror(errno) + ")");
        return false;
      }
      connection.got += static_cast<uint64_t>(got);
      taken += static_cast<size_t>(got);
      if (connection.from)
        if (auto found = watched.find(*connection.from); found != watched.end())
          found->second = Deadline(silence);
      if (static_cast<size_t>(got) < room.size())
        return true;
      if (!roomOf(connection).empty())
        continue;
    }
    if (!endPart(connection, done)) {
      if (connection.from && connection.isConfirmed)
        lose(*connection.from,
             "sent a message larger than 64 KiB without a posted receive");
      return false;
    }
  }
  return true;
}
