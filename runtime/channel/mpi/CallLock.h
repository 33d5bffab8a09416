//===- CallLock.h - When a thread may call MPI ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's thread and its progress thread both call MPI. Under
// MPI_THREAD_MULTIPLE both may call it at any time, so a post never waits while
// the other thread copies megabytes inside MPI. Under MPI_THREAD_SERIALIZED
// only one thread may be inside MPI. So `enter` takes a lock, and a post may
// wait for such a copy.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_CALLLOCK_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_CALLLOCK_H

#include "runtime/system/CallMark.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace chimera::runtime::mpi {

/// A mutex for a rank's thread and its guests (progress threads). A guest gets
/// the mutex only if no rank's thread waits for it. With an ordinary mutex, a
/// guest that locks it again and again could keep a rank waiting for long.
class PriorityMutex {
public:
  // The rank's thread calls these functions. std::unique_lock requires their
  // names.
  void lock();
  bool try_lock() { return mutex.try_lock(); }
  void unlock() { mutex.unlock(); }

  bool tryLockLowPriority() { return ranksWaiting.load() == 0 && try_lock(); }

private:
  std::mutex mutex;
  std::atomic<int> ranksWaiting{0};
};
using PriorityLock = std::unique_lock<PriorityMutex>;

/// Sets whether only one thread at a time may be inside MPI. The setting is for
/// the whole process and must be made before a second thread starts.
void serializeCalls(bool wanted);

/// While this object lives, its thread may call MPI, and callsInFlight reports
/// the call.
class [[nodiscard]] MarkedCall {
public:
  MarkedCall(PriorityLock lock, CallMark &mark, const char *call) noexcept
      : lock(std::move(lock)), mark(&mark) {
    mark.enter(call);
  }
  MarkedCall(MarkedCall &&other) noexcept
      : lock(std::move(other.lock)), mark(std::exchange(other.mark, nullptr)) {}
  MarkedCall &operator=(MarkedCall &&) = delete;
  ~MarkedCall() {
    if (mark)
      mark->leave();
  }

private:
  PriorityLock lock; ///< empty unless serializeCalls(true) was called
  CallMark *mark;
};

/// The rank's thread calls this before the MPI call with the name `call`, and
/// keeps the result until that call returns. Waits while another thread is
/// inside MPI, if calls are serialized. If the MPI call never returns, `call`
/// is part of the message "timed out … waiting for CALL to return".
MarkedCall enter(const char *call);

/// Like `enter`, for a progress thread, but never waits. If calls are
/// serialized, and the rank's thread is inside MPI or waits to call it, returns
/// nothing.
std::optional<MarkedCall> tryToEnter(const char *call);

/// The calls from which the rank's thread and the progress thread have not
/// returned.
std::vector<CallMark::Call> callsInFlight();

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_CALLLOCK_H
