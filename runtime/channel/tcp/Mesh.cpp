//===- Mesh.cpp - Messages over TCP between all ranks ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include "runtime/system/ErrorText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;

Mesh::Mesh(const PeerTable &known, Listener own, milliseconds silence,
           std::function<void(uint32_t, const std::string &)> onLost)
    : peerTable(known), listener(std::move(own)), silence(silence),
      onLost(std::move(onLost)), wakeUp(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      resume(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      nextSign(std::chrono::steady_clock::now()) {
  if (!wakeUp || !resume)
    throw std::runtime_error("cannot create an eventfd: " + errorText(errno));
  makeNonBlocking(listener.socket);
  thread = std::thread([this] { run(); });
}

Mesh::~Mesh() {
  {
    std::lock_guard lock(mutex);
    isLeaving = true;
    wake();
  }
  thread.join();
}

SharedMeshOperation Mesh::send(uint32_t to, Stream stream, ConstBytes bytes,
                               std::function<void()> onDone) {
  auto operation = std::make_shared<MeshOperation>();
  operation->peer = checked(to);
  operation->isSend = true;
  operation->bytes = {const_cast<std::byte *>(bytes.data()), bytes.size()};
  operation->onDone = std::move(onDone);
  Done done;
  if (to == peerTable.rank) {
    std::lock_guard lock(mutex);
    auto inbox = inboxes.try_emplace({to, stream}).first;
    if (inbox->second.posted.empty()) {
      inbox->second.offered.push_back(operation);
      return operation;
    }
    SharedMeshOperation posted = std::move(inbox->second.posted.front());
    inbox->second.posted.pop_front();
    eraseIfIdle(inbox);
    fill(*posted, bytes, done);
    finish(*operation, done);
  } else {
    connectWithinSilence(to);
    std::lock_guard lock(mutex);
    Outgoing &connection = outgoing[to];
    bool wasIdle = connection.frames.empty();
    Sending &sending = connection.streams[stream];
    sending.waiting.push_back(operation);
    ++connection.waiting;
    release(connection, stream, sending);
    // A credit may have arrived but not been read, because credits are polled
    // only while a message waits for one. So read the credits now.
    if (!operation->isReleased)
      readCredits(connection, to);
    eraseIfIdle(connection, stream);
    // Try to write at once: most messages fit into the socket's buffer.
    if (wasIdle)
      flush(connection, to, done);
    if (!operation->isDone())
      wake();
  }
  callBack(done);
  return operation;
}

SharedMeshOperation Mesh::receive(uint32_t from, Stream stream, Bytes bytes,
                                  std::function<void()> onDone) {
  return post(from, stream, bytes, std::move(onDone), /*sendsCredit=*/true);
}

SharedMeshOperation Mesh::receiveWithoutCredit(uint32_t from, Stream stream,
                                               Bytes bytes,
                                               std::function<void()> onDone) {
  return post(from, stream, bytes, std::move(onDone), /*sendsCredit=*/false);
}

SharedMeshOperation Mesh::post(uint32_t from, Stream stream, Bytes bytes,
                               std::function<void()> onDone, bool sendsCredit) {
  auto operation = std::make_shared<MeshOperation>();
  operation->peer = checked(from);
  operation->bytes = bytes;
  operation->onDone = std::move(onDone);
  Done done;
  {
    std::lock_guard lock(mutex);
    auto found = inboxes.try_emplace({from, stream}).first;
    Inbox &inbox = found->second;
    if (!inbox.buffered.empty()) {
      std::vector<std::byte> message = std::move(inbox.buffered.front());
      inbox.buffered.pop_front();
      fill(*operation, message, done);
    } else if (!inbox.offered.empty()) {
      SharedMeshOperation offered = std::move(inbox.offered.front());
      inbox.offered.pop_front();
      fill(*operation, offered->bytes, done);
      finish(*offered, done);
    } else {
      inbox.posted.push_back(operation);
    }
    eraseIfIdle(found);
    announce(from, stream, 1);
    if (Incoming *connection = sendsCredit ? connectionFrom(from) : nullptr)
      sendCreditsOn(*connection);
  }
  callBack(done);
  return operation;
}

void Mesh::sendCredits() {
  std::lock_guard lock(mutex);
  for (Incoming &connection : incoming)
    sendCreditsOn(connection);
}

/// Queues credits. If the other rank has not connected yet, endPart queues them
/// when it connects.
void Mesh::announce(uint32_t from, Stream stream, uint64_t count) {
  Incoming *connection = connectionFrom(from);
  if (!connection)
    return;
  std::vector<Credit> &credits = connection->credits;
  uint64_t begun =
      (connection->creditBytesSent + sizeof(Credit) - 1) / sizeof(Credit);
  if (credits.size() > begun && credits.back().stream == stream)
    credits.back().count += count;
  else
    credits.push_back({stream, count});
}

/// Queues messages of a stream as frames, until a message has no credit and may
/// not be sent ahead.
void Mesh::release(Outgoing &connection, Stream stream, Sending &sending) {
  uint64_t &sentAhead = connection.sentAhead[stream < kFirstOfData];
  while (!sending.waiting.empty() && !sending.isBroken) {
    uint64_t bytes = sending.waiting.front()->bytes.size();
    if (sending.credits > 0) {
      --sending.credits;
    } else if (sentAhead + bytes + kOverhead <= kSendAhead) {
      sentAhead += bytes + kOverhead;
      sending.sentAhead.push_back(bytes + kOverhead);
    } else {
      return;
    }
    sending.waiting.front()->isReleased = true;
    connection.frames.push_back(
        {{Payload, stream, bytes}, std::move(sending.waiting.front())});
    sending.waiting.pop_front();
    --connection.waiting;
  }
}

/// Handles a credit: the other rank has posted receives.
void Mesh::credit(Outgoing &connection, const Credit &more) {
  Sending &sending = connection.streams[more.stream];
  uint64_t &sentAhead = connection.sentAhead[more.stream < kFirstOfData];
  bool hasRoom = false;
  uint64_t count = more.count;
  for (; count > 0 && !sending.sentAhead.empty(); --count) {
    sentAhead -= sending.sentAhead.front();
    sending.sentAhead.pop_front();
    hasRoom = true;
  }
  sending.credits += count;
  release(connection, more.stream, sending);
  // The credit made room for messages sent ahead, so messages of other streams
  // may now be sent ahead.
  if (hasRoom && connection.waiting > 0)
    for (auto &[stream, other] : connection.streams)
      release(connection, stream, other);
  eraseIfIdle(connection, more.stream);
}

void Mesh::eraseIfIdle(Outgoing &connection, Stream stream) {
  if (auto found = connection.streams.find(stream);
      found != connection.streams.end() && found->second.isIdle())
    connection.streams.erase(found);
}

void Mesh::fill(MeshOperation &receive, ConstBytes message, Done &done) {
  receive.bytesAtOtherEnd = message.size();
  receive.isWrongSize = receive.bytes.size() != message.size();
  if (!receive.isWrongSize && !receive.isGivenUp)
    std::ranges::copy(message, receive.bytes.begin());
  finish(receive, done);
}

void Mesh::finish(MeshOperation &operation, Done &done) {
  if (operation.onDone)
    done.push_back(std::exchange(operation.onDone, nullptr));
  operation.done.store(true, std::memory_order_release);
  changed.notify_all();
  if (isDriven)
    wake();
}

void Mesh::eraseIfIdle(Inboxes::iterator inbox) {
  if (inbox->second.isIdle())
    inboxes.erase(inbox);
}

void Mesh::abandon(const SharedMeshOperation &operation) {
  std::lock_guard lock(mutex);
  if (operation->isDone())
    return;
  operation->onDone = nullptr;
  if (!operation->isSend) {
    operation->isGivenUp = true;
    operation->bytes = {};
    for (Incoming &connection : incoming)
      if (connection.operation == operation)
        connection.isDiscarded = true;
    return;
  }
  uint32_t to = operation->peer;
  if (to == peerTable.rank) {
    for (auto &[key, inbox] : inboxes)
      std::erase(inbox.offered, operation);
    return;
  }
  Outgoing &connection = outgoing[to];
  // A message whose sending has begun must be sent completely. So copy its
  // bytes: the caller may free them after this call.
  if (!connection.frames.empty() && connection.sent > 0 &&
      connection.frames.front().operation == operation) {
    operation->own.assign(operation->bytes.begin(), operation->bytes.end());
    operation->bytes = operation->own;
    return;
  }
  auto isIt = [&](const Frame &frame) { return frame.operation == operation; };
  if (auto found = std::ranges::find_if(connection.frames, isIt);
      found != connection.frames.end()) {
    connection.streams[found->header.stream].isBroken = true;
    connection.frames.erase(found);
    return;
  }
  for (auto &[stream, sending] : connection.streams)
    if (std::erase(sending.waiting, operation) > 0) {
      --connection.waiting;
      sending.isBroken = true;
    }
}

size_t Mesh::countStreams() const {
  std::lock_guard lock(mutex);
  size_t all = inboxes.size();
  for (const auto &[peer, connection] : outgoing)
    all += connection.streams.size();
  return all;
}
