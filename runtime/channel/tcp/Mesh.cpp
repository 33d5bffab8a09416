//===- Mesh.cpp - Messages over TCP between all ranks ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include "runtime/system/WaitError.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {
/// What a connection begins with, sent by who makes it and answered by the
/// other with its own rank.
struct Greeting {
  uint64_t magic, secret, rank;
};
constexpr uint64_t kMagic = 0x314d454843;
enum Kind : uint64_t { Payload, SignOfLife, Bye };

constexpr milliseconds kDial = 5s;
/// At most so much is moved for one connection before it is another's turn.
constexpr size_t kTurn = 256 << 10;

template <typename T> std::span<const std::byte> bytesOf(const T &value) {
  return std::as_bytes(std::span(&value, 1));
}
} // namespace

Mesh::Mesh(const Book &known, Listener own, milliseconds silence,
           std::function<void(uint32_t, const std::string &)> onLost)
    : book(known), listener(std::move(own)), silence(silence),
      onLost(std::move(onLost)), wakeUp(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      nextSign(std::chrono::steady_clock::now()) {
  if (!wakeUp)
    throw std::runtime_error(std::string("cannot make an event: ") +
                             std::strerror(errno));
  makeImmediate(listener.socket);
  thread = std::thread([this] { run(); });
}

Mesh::~Mesh() {
  {
    std::lock_guard lock(mutex);
    isLeaving = true;
    for (auto &[peer, connection] : outgoing)
      connection.frames.push_back({{Bye, 0, 0}, nullptr});
  }
  wake();
  thread.join();
}

void Mesh::wake() {
  uint64_t one = 1;
  (void)!write(wakeUp.number(), &one, sizeof(one));
}

uint32_t Mesh::checked(uint32_t peer) const {
  if (peer >= ranks())
    throw std::invalid_argument("expected a rank below " +
                                std::to_string(ranks()) + ", got " +
                                std::to_string(peer));
  return peer;
}

/// Tries all addresses of the rank, of which some may be another host's.
Socket Mesh::dial(uint32_t peer, milliseconds timeout) const {
  std::string reasons;
  const Address &address = book.addresses[peer];
  for (const std::string &host : address.hosts)
    try {
      Socket socket = connectTo(host, address.port, timeout);
      sendBytes(socket, bytesOf(Greeting{kMagic, book.secret, book.rank}),
                timeout);
      Greeting answer{};
      receiveBytes(socket, std::as_writable_bytes(std::span(&answer, 1)),
                   timeout);
      if (answer.magic == kMagic && answer.secret == book.secret &&
          answer.rank == peer)
        return socket;
      throw std::runtime_error(host + " port " + std::to_string(address.port) +
                               ": another program answers");
    } catch (const std::runtime_error &error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  throw std::runtime_error("cannot reach rank " + std::to_string(peer) + ": " +
                           (reasons.empty() ? "it has no address" : reasons));
}

/// By a thread of the rank: the thread of the mesh must not wait for one rank.
void Mesh::reach(uint32_t peer, milliseconds timeout) {
  {
    std::lock_guard lock(mutex);
    if (outgoing.count(peer))
      return;
  }
  Socket socket = dial(peer, timeout);
  std::lock_guard lock(mutex);
  Outgoing &connection = outgoing[peer];
  if (!connection.socket)
    connection.socket = std::move(socket);
}

SharedOperation Mesh::send(uint32_t to, Stream stream, ConstBytes bytes,
                           std::function<void()> onDone) {
  auto operation = std::make_shared<Operation>();
  operation->peer = checked(to);
  operation->isSend = true;
  operation->bytes = {const_cast<std::byte *>(bytes.data()), bytes.size()};
  operation->onDone = std::move(onDone);
  Done done;
  if (to == book.rank) {
    std::lock_guard lock(mutex);
    Inbox &inbox = inboxes[{to, stream}];
    if (inbox.asked.empty()) {
      inbox.kept.emplace_back(bytes.begin(), bytes.end());
    } else {
      SharedOperation receive = inbox.asked.front();
      inbox.asked.pop_front();
      receive->other = bytes.size();
      receive->isWrongSize = receive->bytes.size() != bytes.size();
      if (!receive->isWrongSize)
        std::ranges::copy(bytes, receive->bytes.begin());
      finish(*receive, done);
    }
    finish(*operation, done);
  } else {
    reach(to, kDial);
    std::lock_guard lock(mutex);
    Outgoing &connection = outgoing[to];
    connection.frames.push_back({{Payload, stream, bytes.size()}, operation});
    // Most fit into what the system sends by itself.
    if (connection.frames.size() == 1)
      flush(connection, to, done);
    if (!connection.frames.empty())
      wake();
  }
  for (const auto &call : done)
    call();
  return operation;
}

SharedOperation Mesh::receive(uint32_t from, Stream stream, Bytes bytes,
                              std::function<void()> onDone) {
  auto operation = std::make_shared<Operation>();
  operation->peer = checked(from);
  operation->bytes = bytes;
  operation->onDone = std::move(onDone);
  Done done;
  {
    std::lock_guard lock(mutex);
    Inbox &inbox = inboxes[{from, stream}];
    if (inbox.kept.empty()) {
      inbox.asked.push_back(operation);
      return operation;
    }
    std::vector<std::byte> message = std::move(inbox.kept.front());
    inbox.kept.pop_front();
    operation->other = message.size();
    operation->isWrongSize = message.size() != bytes.size();
    if (!operation->isWrongSize)
      std::ranges::copy(message, bytes.begin());
    finish(*operation, done);
  }
  for (const auto &call : done)
    call();
  return operation;
}

void Mesh::finish(Operation &operation, Done &done) {
  if (operation.onDone)
    done.push_back(std::exchange(operation.onDone, nullptr));
  operation.done.store(true, std::memory_order_release);
  changed.notify_all();
}

void Mesh::wait(const SharedOperation &operation, milliseconds timeout) {
  waitUntil(
      [&] {
        if (operation->isDone())
          return true;
        // With the lock.
        if (auto found = gone.find(operation->peer); found != gone.end())
          throw WaitError(WaitError::Reason::Aborted,
                          "rank " + std::to_string(operation->peer) + " " +
                              found->second);
        return false;
      },
      timeout,
      [&] {
        return "rank " + std::to_string(operation->peer) + " to " +
               (operation->isSend ? "receive" : "send");
      });
  if (operation->isWrongSize)
    throw std::invalid_argument(
        "receive from rank " + std::to_string(operation->peer) + ": expected " +
        std::to_string(operation->bytes.size()) +
        " bytes at the other end, got " + std::to_string(operation->other));
}

void Mesh::waitUntil(const std::function<bool()> &condition,
                     milliseconds timeout,
                     const std::function<std::string()> &what) {
  constexpr milliseconds kLook(50);
  Deadline deadline(timeout);
  std::unique_lock lock(mutex);
  for (;;) {
    if (aborted)
      throw WaitError(WaitError::Reason::Aborted, "aborted: " + *aborted);
    if (condition())
      return;
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut, timedOut(timeout, what()));
    changed.wait_for(lock, kLook);
  }
}

void Mesh::abandon(const SharedOperation &operation) {
  std::lock_guard lock(mutex);
  if (operation->isDone())
    return;
  operation->onDone = nullptr;
  if (operation->isSend) {
    operation->own.assign(operation->bytes.begin(), operation->bytes.end());
    operation->bytes = operation->own;
    return;
  }
  // A message that comes for it in part goes nowhere.
  for (auto &[key, inbox] : inboxes)
    std::erase(inbox.asked, operation);
  for (Incoming &connection : incoming)
    if (connection.operation == operation) {
      connection.kept.resize(connection.header.bytes);
      connection.isUnwanted = true;
      connection.operation.reset();
    }
}

bool Mesh::hasLost(uint32_t peer) const {
  std::lock_guard lock(mutex);
  return gone.count(peer) != 0;
}

void Mesh::watch(uint32_t peer) {
  reach(checked(peer), kDial);
  std::lock_guard lock(mutex);
  watched.try_emplace(peer, silence);
  wake();
}

void Mesh::abort(const std::string &reason) {
  std::lock_guard lock(mutex);
  if (!aborted)
    aborted = reason;
  changed.notify_all();
}

bool Mesh::hears(uint32_t peer) const {
  return std::ranges::any_of(incoming, [&](const Incoming &connection) {
    return connection.from == peer;
  });
}

void Mesh::lose(uint32_t peer, const std::string &how) {
  if (isLeaving || gone.count(peer))
    return;
  gone.emplace(peer, how);
  newlyLost.emplace_back(peer, how);
  watched.erase(peer);
  changed.notify_all();
}

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
  if (greeting.magic != kMagic || greeting.secret != book.secret ||
      greeting.rank >= ranks())
    return false;
  connection.from = static_cast<uint32_t>(greeting.rank);
  Greeting answer{kMagic, book.secret, book.rank};
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
  Inbox &inbox = inboxes[{*connection.from, connection.header.stream}];
  std::vector<std::byte> message = std::exchange(connection.kept, {});
  if (std::exchange(connection.isUnwanted, false))
    return;
  if (inbox.asked.empty()) {
    inbox.kept.push_back(std::move(message));
    return;
  }
  // It was asked for meanwhile, or is of another size.
  SharedOperation asked = inbox.asked.front();
  inbox.asked.pop_front();
  asked->other = message.size();
  asked->isWrongSize = asked->bytes.size() != message.size();
  if (!asked->isWrongSize)
    std::ranges::copy(message, asked->bytes.begin());
  finish(*asked, done);
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
        if (connection.from)
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
      std::memcpy(&connection.header, connection.head.data(), sizeof(Header));
      connection.got = 0;
      if (connection.header.kind == Bye) {
        gone.emplace(*connection.from, "has left the run");
        watched.erase(*connection.from);
        changed.notify_all();
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

void Mesh::run() {
  std::optional<Deadline> leaving;
  try {
    while (turn(leaving))
      ;
  } catch (const std::exception &error) {
    abort(std::string("the thread that moves messages failed: ") +
          error.what());
  }
}

/// False where this rank may leave.
bool Mesh::turn(std::optional<Deadline> &leaving) {
  constexpr milliseconds kLeaving = 2s;
  constexpr int kNap = 50;
  Done done;
  std::vector<std::pair<uint32_t, std::string>> losses;
  std::vector<pollfd> entries = {{wakeUp.number(), POLLIN, 0},
                                 {listener.socket.number(), POLLIN, 0}};
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
    if (isLeaving && !leaving)
      leaving.emplace(kLeaving);
    if (isLeaving && (!hasFrames || leaving->passed()))
      return false;
  }
  // Sends that ended may bring others.
  poll(entries.data(), entries.size(), done.empty() ? kNap : 0);
  {
    std::lock_guard lock(mutex);
    uint64_t count = 0;
    (void)!read(wakeUp.number(), &count, sizeof(count));
    for (;;) {
      Socket accepted(accept4(listener.socket.number(), nullptr, nullptr,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!accepted)
        break;
      makeImmediate(accepted);
      incoming.emplace_back().socket = std::move(accepted);
    }
    std::erase_if(incoming, [&](Incoming &connection) {
      return !readFrom(connection, done);
    });
    losses = std::exchange(newlyLost, {});
  }
  for (const auto &call : done)
    call();
  for (const auto &[peer, how] : losses)
    onLost(peer, how);
  return true;
}
