//===- Turns.h - Who calls MPI when -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's thread and its progress thread both call MPI. Under
// MPI_THREAD_MULTIPLE they do so at any time: a post must not wait while the
// other copies megabytes within MPI. Where MPI allows threads in turn only
// (MPI_THREAD_SERIALIZED) whoever calls it holds the lock of `enter`: there
// posts may wait for a copy.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_TURNS_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_TURNS_H

#include "runtime/system/CallMark.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace chimera::runtime::mpi {

/// A mutex of a rank and guests: a guest gets it only where no rank waits. The
/// lock goes to whoever is awake, so a rank could else wait for long while a
/// guest takes it again and again.
class RankFirst {
public:
  // For ranks; with the names that std::unique_lock wants.
  void lock();
  bool try_lock() { return mutex.try_lock(); }
  void unlock() { mutex.unlock(); }

  bool tryLockAsGuest() { return ranksWaiting.load() == 0 && try_lock(); }

private:
  std::mutex mutex;
  std::atomic<int> ranksWaiting{0};
};
using Turn = std::unique_lock<RankFirst>;

/// Whether MPI wants to be called by one thread at a time. For this process, to
/// be set before there is a second thread.
void takeTurns(bool wanted);

/// While it lives, its thread may call MPI, and callsUnderWay shows the call.
class [[nodiscard]] MarkedCall {
public:
  MarkedCall(Turn turn, CallMark &mark, const char *call) noexcept
      : turn(std::move(turn)), mark(&mark) {
    mark.enter(call);
  }
  MarkedCall(MarkedCall &&other) noexcept
      : turn(std::move(other.turn)), mark(std::exchange(other.mark, nullptr)) {}
  MarkedCall &operator=(MarkedCall &&) = delete;
  ~MarkedCall() {
    if (mark)
      mark->leave();
  }

private:
  Turn turn; ///< holds nothing where no turns are taken
  CallMark *mark;
};

/// For the thread of a rank: lets it make `call`, in its turn. If that does not
/// return, the message "timed out … waiting for CALL to return" names it.
MarkedCall enter(const char *call);

/// For a progress thread: the same, or none if the rank's thread has its turn.
std::optional<MarkedCall> tryToEnter(const char *call);

/// The call that the rank's thread makes, and the one of the progress thread.
std::vector<CallMark::Seen> callsUnderWay();

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_TURNS_H
