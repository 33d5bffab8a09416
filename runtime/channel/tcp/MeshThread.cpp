//===- MeshThread.cpp - The thread that moves messages --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/tcp/Mesh.h"

#include "runtime/system/Deadline.h"

#include <algorithm>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace chimera::runtime::tcp;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// A thread sleeps for at most this time before it checks its condition again.
static constexpr milliseconds kLook(50);

static void signal(const Socket &event) {
  uint64_t one = 1;
  (void)!write(event.fd(), &one, sizeof(one));
}

static void clear(const Socket &event) {
  uint64_t count = 0;
  (void)!read(event.fd(), &count, sizeof(count));
}

/// The right to move bytes. At most one thread has it at a time. `take`
/// requires the mesh's lock.
class Mesh::MoverRole {
public:
  MoverRole(Mesh &mesh, Lock &lock) : mesh(mesh), lock(lock) {}
  MoverRole(const MoverRole &) = delete;
  ~MoverRole() {
    if (!isMine)
      return;
    if (!lock.owns_lock())
      lock.lock();
    mesh.mover.reset();
    mesh.isDriven = false;
    mesh.changed.notify_all(); // another thread in waitUntil may take the right
    if (mesh.leavesSockets || std::exchange(mesh.hasNewSocket, false))
      signal(mesh.resume);
  }

  /// Gets the right if no thread has it. Returns whether this thread has it.
  /// `waits` says that the caller is waitUntil.
  bool take(bool waits) {
    if (!isMine && !mesh.mover) {
      isMine = true;
      mesh.mover = std::this_thread::get_id();
      mesh.isDriven = waits;
    }
    return isMine;
  }

private:
  Mesh &mesh;
  Lock &lock;
  bool isMine = false;
};

/// Wakes the thread that moves bytes, so that it polls all sockets again.
/// Requires the mesh's lock.
void Mesh::wake() {
  if (mover != std::this_thread::get_id())
    signal(wakeUp);
}

/// Runs callbacks. Requires that the caller does not hold the mesh's lock. Then
/// wakes the threads in waitUntil, because a callback may make their condition
/// true.
void Mesh::callBack(const Done &done) {
  if (done.empty())
    return;
  for (const auto &call : done)
    call();
  std::lock_guard lock(mutex);
  changed.notify_all();
  if (isDriven)
    wake();
}

void Mesh::wait(const SharedMeshOperation &operation, milliseconds timeout) {
  waitUntil(
      [&] {
        if (operation->isDone())
          return true;
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
        " bytes at the other end, got " +
        std::to_string(operation->bytesAtOtherEnd));
}

/// Requires the mesh's lock.
void Mesh::throwIfAborted() const {
  if (aborted)
    throw WaitError(WaitError::Reason::Aborted, "aborted: " + *aborted);
}

void Mesh::waitUntil(const std::function<bool()> &condition,
                     milliseconds timeout,
                     const std::function<std::string()> &what) {
  Deadline deadline(timeout);
  Lock lock(mutex);
  MoverRole role(*this, lock);
  for (;;) {
    throwIfAborted();
    if (condition())
      return;
    if (deadline.passed())
      throw WaitError(WaitError::Reason::TimedOut,
                      timeoutMessage(timeout, what()));
    if (!role.take(/*waits=*/true)) {
      changed.wait_for(lock, kLook);
      continue;
    }
    std::vector<pollfd> found = polled();
    lock.unlock();
    poll(found.data(), found.size(), kLook.count());
    lock.lock();
    move(lock, found);
  }
}

void Mesh::abort(const std::string &reason) {
  std::lock_guard lock(mutex);
  if (!aborted)
    aborted = reason;
  changed.notify_all();
  wake();
}

/// Whether to poll for credits. If no message waits for a credit, credits are
/// read when the rank sends its next message: to wake up for each credit would
/// take time from the computation. When the rank is aborted or leaves, all
/// credits must be read. Otherwise closing the socket would reset the
/// connection, and the last messages would be lost.
bool Mesh::wantsCredits(const Outgoing &connection) const {
  return connection.waiting > 0 || aborted || isLeaving;
}

/// The file descriptors that the thread that moves bytes polls.
std::vector<pollfd> Mesh::polled() const {
  std::vector<pollfd> all = {{wakeUp.fd(), POLLIN, 0}};
  if (std::chrono::steady_clock::now() >= nextAccept)
    for (const Socket *each : {&listener.local, &listener.socket})
      if (*each)
        all.push_back({each->fd(), POLLIN, 0});
  for (const auto &[peer, connection] : outgoing) {
    short events = 0;
    if (!connection.frames.empty())
      events |= POLLOUT;
    if (wantsCredits(connection))
      events |= POLLIN;
    if (events && !connection.isBroken)
      all.push_back({connection.socket.fd(), events, 0});
  }
  for (const Incoming &connection : incoming) {
    short credits = connection.credits.empty() ? 0 : POLLOUT;
    all.push_back(
        {connection.socket.fd(), static_cast<short>(POLLIN | credits), 0});
  }
  return all;
}

/// Moves bytes of the sockets that are ready in `found`, the result of poll.
/// Runs the callbacks of completed operations, and then adds departed ranks to
/// `gone`. The caller must have the MoverRole and the lock. The lock is
/// released during the callbacks.
void Mesh::move(Lock &lock, const std::vector<pollfd> &found) {
  auto isReady = [&](const Socket &socket) {
    return std::ranges::any_of(found, [&](const pollfd &each) {
      return each.fd == socket.fd() && each.revents != 0;
    });
  };
  Done done;
  if (isReady(wakeUp))
    clear(wakeUp);
  for (auto &[peer, connection] : outgoing) {
    if (wantsCredits(connection) && isReady(connection.socket))
      readCredits(connection, peer);
    flush(connection, peer, done);
  }
  std::erase_if(incoming, [&](Incoming &connection) {
    bool isStranger = !connection.from;
    return ((isStranger || isReady(connection.socket)) &&
            !readFrom(connection, done)) ||
           (!connection.from && connection.greetsUntil.passed());
  });
  for (Incoming &connection : incoming)
    sendCreditsOn(connection);
  if (isReady(listener.socket) || isReady(listener.local))
    accept();
  std::vector<Departure> left = std::exchange(departures, {});
  if (done.empty() && left.empty())
    return;
  lock.unlock();
  for (const auto &call : done)
    call();
  lock.lock();
  for (Departure &each : left)
    // A rank may be in `left` several times. Only its first reason is used.
    if (gone.emplace(each.peer, each.how).second && each.isLoss)
      unreported.push_back(std::move(each));
  changed.notify_all();
  if (!unreported.empty())
    signal(resume);
}

void Mesh::run() {
  std::optional<Deadline> flushing;
  try {
    while (runIteration(flushing))
      ;
  } catch (const std::exception &error) {
    // Report this rank as lost, so that `onLost` tells the other ranks. No
    // other thread learns of this exception.
    onLost(peerTable.rank,
           std::string("cannot move messages: ") + error.what());
  }
}

/// One iteration of the mesh's own thread. Returns false if the thread may end.
bool Mesh::runIteration(std::optional<Deadline> &flushing) {
  std::vector<Departure> told;
  {
    Lock lock(mutex);
    keepAlive();
    if (isLeaving && mayLeave(flushing))
      return false;
    leavesSockets = mover.has_value();
    hasNewSocket = false;
    std::vector<pollfd> found;
    if (!leavesSockets)
      found = polled();
    found.push_back({resume.fd(), POLLIN, 0});
    lock.unlock();
    poll(found.data(), found.size(), kLook.count());
    lock.lock();
    leavesSockets = false;
    clear(resume);
    if (MoverRole role(*this, lock); role.take(/*waits=*/false))
      move(lock, found);
    told = std::exchange(unreported, {});
  }
  for (const Departure &each : told)
    onLost(each.peer, each.how);
  return true;
}

/// Sends a goodbye to each rank, after all other messages to it. Returns true
/// when all ranks have closed their connections or 2 s have passed. If this
/// rank closed a connection with unread credits, the kernel would reset it, and
/// messages in flight would be lost. Drops data messages without a credit.
bool Mesh::mayLeave(std::optional<Deadline> &flushing) {
  constexpr milliseconds kFlushing = 2s;
  if (!flushing)
    flushing.emplace(kFlushing);
  if (flushing->passed())
    return true;
  bool isOver = true;
  for (auto &[peer, connection] : outgoing) {
    if (connection.isBroken)
      continue;
    isOver = false;
    bool waits = std::ranges::any_of(connection.streams, [](const auto &each) {
      return each.first < kFirstOfData && !each.second.waiting.empty();
    });
    if (waits)
      continue;
    if (!std::exchange(connection.saidBye, true))
      connection.frames.push_back({{Bye, 0, 0}, nullptr});
    Done none; // nobody waits for these operations any more
    flush(connection, peer, none);
    if (connection.frames.empty())
      shutdown(connection.socket.fd(), SHUT_WR);
  }
  return isOver;
}
