//===- MeshThread.cpp - The thread that moves a rank's messages -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// At most so much is moved for one connection before it is another's turn.
static constexpr size_t kTurn = 256 << 10;

/// Sends what the system takes.
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
      ssize_t sent =
          sendmsg(connection.socket.number(), &message, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
          return;
        connection.isBroken = true;
        connection.frames.clear();
        // What it sent says how it ended, and may not be read yet.
        if (!hears(peer))
          lose(peer, std::string("has closed its connection (") +
                         std::strerror(errno) + ")");
        return;
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

/// Answers who connects. False where it is not one of this run.
bool Mesh::greet(Incoming &connection) {
  Greeting greeting{};
  std::memcpy(&greeting, connection.greeting.data(), sizeof(greeting));
  if (greeting.magic != kMagic || greeting.rank >= ranks() ||
      greeting.rank == book.rank ||
      greeting.secret != book.secrets[greeting.rank])
    return false;
  connection.from = static_cast<uint32_t>(greeting.rank);
  Greeting answer{kMagic, book.secrets[book.rank], book.rank};
  // A connection that is new takes a few bytes at once.
  return ::send(connection.socket.number(), &answer, sizeof(answer),
                MSG_NOSIGNAL) == sizeof(answer);
}

/// After a header.
void Mesh::beginPayload(Incoming &connection) {
  connection.got = 0;
  connection.inPayload = true;
  Inbox &inbox = inboxes[{*connection.from, connection.header.stream}];
  if (!inbox.asked.empty()) {
    SharedOperation &asked = inbox.asked.front();
    asked->other = connection.header.bytes;
    asked->isWrongSize = asked->bytes.size() != connection.header.bytes;
    if (!asked->isWrongSize) {
      connection.operation = std::move(asked);
      inbox.asked.pop_front();
      return;
    }
  }
  connection.kept.resize(connection.header.bytes);
}

void Mesh::endPayload(Incoming &connection, Done &done) {
  connection.inPayload = false;
  if (connection.operation)
    return finish(*std::exchange(connection.operation, nullptr), done);
  std::vector<std::byte> message = std::exchange(connection.kept, {});
  // It may have been asked for meanwhile, or be of another size.
  if (!std::exchange(connection.isUnwanted, false))
    deliver(inboxes[{*connection.from, connection.header.stream}],
            std::move(message), done);
}

/// Takes what is there. False where the connection has ended.
bool Mesh::readFrom(Incoming &connection, Done &done) {
  for (size_t taken = 0; taken < kTurn;) {
    Bytes room;
    if (!connection.from) {
      connection.greeting.resize(sizeof(Greeting));
      room = Bytes(connection.greeting).subspan(connection.got);
    } else if (!connection.inPayload) {
      connection.head.resize(sizeof(Header));
      room = Bytes(connection.head).subspan(connection.got);
    } else {
      room = (connection.operation ? connection.operation->bytes
                                   : Bytes(connection.kept))
                 .subspan(connection.got);
    }
    if (!room.empty()) {
      ssize_t got =
          recv(connection.socket.number(), room.data(), room.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
      if (got <= 0) {
        if (connection.from && connection.isConfirmed)
          lose(*connection.from,
               got == 0
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
        continue;
    }
    if (!connection.from) {
      if (!greet(connection))
        return false;
      connection.got = 0;
      continue;
    }
    if (!connection.inPayload) {
      connection.isConfirmed = true;
      std::memcpy(&connection.header, connection.head.data(), sizeof(Header));
      connection.got = 0;
      if (connection.header.kind == Bye) {
        departures.push_back(
            {*connection.from, "has left the run", /*isLoss=*/false});
        watched.erase(*connection.from);
      }
      if (connection.header.kind == Payload)
        beginPayload(connection);
      continue;
    }
    endPayload(connection, done);
    connection.got = 0;
  }
  return true;
}

/// Sends signs of life, and looks who is silent.
void Mesh::keepAlive() {
  auto now = std::chrono::steady_clock::now();
  if (now >= nextSign) {
    nextSign = now + std::clamp<milliseconds>(silence / 4, 10ms, 1s);
    for (auto &[peer, deadline] : watched)
      if (Outgoing &connection = outgoing[peer]; connection.frames.size() < 2)
        connection.frames.push_back({{SignOfLife, 0, 0}, nullptr});
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

/// Takes new connections. Strangers who say nothing must not use up what the
/// process may open: the oldest are shown out, but only those that could have
/// said something, which are those of an earlier turn.
void Mesh::accept() {
  constexpr std::ptrdiff_t kMostStrangers = 64;
  constexpr milliseconds kPause = 200ms;
  auto isStranger = [](const Incoming &each) { return !each.from; };
  std::ptrdiff_t strangers = std::ranges::count_if(incoming, isStranger);
  std::ptrdiff_t earlier = strangers;
  auto showOut = [&] {
    if (earlier == 0)
      return false;
    incoming.erase(std::ranges::find_if(incoming, isStranger));
    --earlier, --strangers;
    return true;
  };
  while (strangers < kMostStrangers || showOut()) {
    Socket accepted(accept4(listener.socket.number(), nullptr, nullptr,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        while (showOut())
          ;
        nextAccept = std::chrono::steady_clock::now() + kPause;
      }
      return;
    }
    makeImmediate(accepted);
    incoming.emplace_back().socket = std::move(accepted);
    ++strangers;
  }
}

void Mesh::run() {
  std::optional<Deadline> flushing;
  try {
    while (turn(flushing))
      ;
  } catch (const std::exception &error) {
    // Nobody else can tell the others.
    onLost(book.rank, std::string("cannot move messages: ") + error.what());
  }
}

/// False where this rank may leave.
bool Mesh::turn(std::optional<Deadline> &flushing) {
  constexpr milliseconds kFlushing = 2s;
  constexpr int kNap = 50;
  Done done;
  std::vector<Departure> left;
  std::vector<pollfd> entries = {{wakeUp.number(), POLLIN, 0}};
  if (std::chrono::steady_clock::now() >= nextAccept)
    entries.push_back({listener.socket.number(), POLLIN, 0});
  {
    std::lock_guard lock(mutex);
    keepAlive();
    bool hasFrames = false;
    for (auto &[peer, connection] : outgoing) {
      flush(connection, peer, done);
      if (connection.frames.empty() || connection.isBroken)
        continue;
      hasFrames = true;
      entries.push_back({connection.socket.number(), POLLOUT, 0});
    }
    for (const Incoming &connection : incoming)
      entries.push_back({connection.socket.number(), POLLIN, 0});
    if (isLeaving && !flushing)
      flushing.emplace(kFlushing);
    if (isLeaving && (!hasFrames || flushing->passed()))
      return false;
  }
  // Sends that ended may bring others.
  poll(entries.data(), entries.size(), done.empty() ? kNap : 0);
  {
    std::lock_guard lock(mutex);
    uint64_t count = 0;
    (void)!read(wakeUp.number(), &count, sizeof(count));
    std::erase_if(incoming, [&](Incoming &connection) {
      return !readFrom(connection, done) ||
             (!connection.from && connection.greetsUntil.passed());
    });
    accept();
    left = std::exchange(departures, {});
  }
  callBack(done);
  if (left.empty())
    return true;
  {
    std::lock_guard lock(mutex);
    // Each is gone once, and as it was first.
    std::erase_if(left, [&](const Departure &each) {
      return !gone.emplace(each.peer, each.how).second;
    });
    changed.notify_all();
  }
  for (const Departure &each : left)
    if (each.isLoss)
      onLost(each.peer, each.how);
  return true;
}
