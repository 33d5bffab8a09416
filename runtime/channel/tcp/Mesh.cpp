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
#include <unistd.h>

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
Socket Mesh::dial(uint32_t peer, milliseconds connecting,
                  milliseconds answering) const {
  std::string reasons;
  const Address &address = book.addresses[peer];
  for (const std::string &host : address.hosts)
    try {
      Socket socket = connectTo(host, address.port, connecting);
      // Only the first that takes a connection is waited for so long: it is the
      // likeliest to be the rank's.
      milliseconds patience = std::exchange(answering, connecting);
      sendBytes(socket,
                bytesOf(Greeting{kMagic, book.secrets[book.rank], book.rank}),
                connecting);
      Greeting answer{};
      receiveBytes(socket, std::as_writable_bytes(std::span(&answer, 1)),
                   patience);
      if (answer.magic == kMagic && answer.secret == book.secrets[peer] &&
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

/// A rank that failed tells all others why before it ends, and that may come
/// behind the end of the connection to it.
Socket Mesh::dialOrHearWhy(uint32_t peer, milliseconds connecting,
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

/// By a thread of the rank: the thread of the mesh must not wait for one rank.
void Mesh::reach(uint32_t peer, milliseconds timeout) {
  reach(peer, timeout, timeout);
}

/// A rank that is stopped has not failed, and answers when it goes on.
void Mesh::reachForLong(uint32_t peer) { reach(peer, kDial, silence); }

void Mesh::reach(uint32_t peer, milliseconds connecting,
                 milliseconds answering) {
  {
    std::lock_guard lock(mutex);
    if (outgoing.count(peer))
      return;
  }
  Socket socket = dialOrHearWhy(peer, connecting, answering);
  std::lock_guard lock(mutex);
  Outgoing &connection = outgoing[peer];
  if (connection.socket)
    return; // another thread was faster
  connection.socket = std::move(socket);
  connection.frames.push_back({{SignOfLife, 0, 0}, nullptr}); // confirms it
  Done none;
  flush(connection, peer, none); // so that what is sent next leaves at once
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
    deliver(inboxes[{to, stream}], {bytes.begin(), bytes.end()}, done);
    finish(*operation, done);
  } else {
    reachForLong(to);
    std::lock_guard lock(mutex);
    Outgoing &connection = outgoing[to];
    connection.frames.push_back({{Payload, stream, bytes.size()}, operation});
    // Most fit into what the system sends by itself.
    if (connection.frames.size() == 1)
      flush(connection, to, done);
    if (!connection.frames.empty())
      wake();
  }
  callBack(done);
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
    fill(*operation, message, done);
  }
  callBack(done);
  return operation;
}

/// Gives a message that is here to the receive that asks for it, or keeps it.
void Mesh::deliver(Inbox &inbox, std::vector<std::byte> message, Done &done) {
  if (inbox.asked.empty()) {
    inbox.kept.push_back(std::move(message));
    return;
  }
  SharedOperation asked = inbox.asked.front();
  inbox.asked.pop_front();
  fill(*asked, message, done);
}

void Mesh::fill(Operation &receive, ConstBytes message, Done &done) {
  receive.other = message.size();
  receive.isWrongSize = receive.bytes.size() != message.size();
  if (!receive.isWrongSize)
    std::ranges::copy(message, receive.bytes.begin());
  finish(receive, done);
}

void Mesh::finish(Operation &operation, Done &done) {
  if (operation.onDone)
    done.push_back(std::exchange(operation.onDone, nullptr));
  operation.done.store(true, std::memory_order_release);
  changed.notify_all();
}

/// To be called without the lock. A thread in waitUntil may wait for what a
/// call does, so it is woken behind them.
void Mesh::callBack(const Done &done) {
  if (done.empty())
    return;
  for (const auto &call : done)
    call();
  std::lock_guard lock(mutex);
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

/// To be called with the lock.
void Mesh::throwIfAborted() const {
  if (aborted)
    throw WaitError(WaitError::Reason::Aborted, "aborted: " + *aborted);
}

void Mesh::waitUntil(const std::function<bool()> &condition,
                     milliseconds timeout,
                     const std::function<std::string()> &what) {
  constexpr milliseconds kLook(50);
  Deadline deadline(timeout);
  std::unique_lock lock(mutex);
  for (;;) {
    throwIfAborted();
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

bool Mesh::hasReached(uint32_t peer) const {
  std::lock_guard lock(mutex);
  return outgoing.count(peer) != 0;
}

bool Mesh::hasLost(uint32_t peer) const {
  std::lock_guard lock(mutex);
  return gone.count(peer) != 0;
}

void Mesh::watch(uint32_t peer) {
  reachForLong(checked(peer));
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
    return connection.from == peer && connection.isConfirmed;
  });
}

void Mesh::lose(uint32_t peer, const std::string &how) {
  if (isLeaving || gone.count(peer))
    return;
  departures.push_back({peer, how, /*isLoss=*/true});
  watched.erase(peer);
}
