//===- ProgressThread.h - Moves messages while a rank computes --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI is one per process and moves bytes only while some thread is inside it.
// Here that is one thread at a time: whoever calls MPI, or touches what the
// rank and its progress thread share, holds the lock of `enter`. That asks no
// more of MPI than MPI_THREAD_SERIALIZED, which costs its calls nothing, and
// makes the lock the one thing to reason about.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_MPI_PROGRESSTHREAD_H
#define CHIMERA_RUNTIME_TRANSPORT_MPI_PROGRESSTHREAD_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace chimera::runtime::mpi {

/// Locks MPI for the thread of a rank, which goes before progress threads.
std::unique_lock<std::mutex> enter();

/// Whether a rank's thread waits in `enter`.
bool rankWantsIn();

/// Calls `drive` over and over while the rank is outside MPI and there is
/// something to drive. While bytes move, and shortly after, it yields between
/// calls; then it naps for at most 0.2 ms; while it has nothing to do it
/// sleeps.
///
/// The rank's thread calls the functions, all but the destructor with the lock.
class ProgressThread {
public:
  /// Starts the thread. `drive` and `needed`, whether there is something to
  /// drive, are called with the lock and must not throw.
  ProgressThread(std::function<void()> drive, std::function<bool()> needed);
  /// Requires that this thread does not hold the lock.
  ~ProgressThread();
  ProgressThread(const ProgressThread &) = delete;
  ProgressThread &operator=(const ProgressThread &) = delete;

  /// The rank drives MPI itself from now on: two would fight for the lock.
  void pause() { paused = true; }
  /// The rank goes back to its computations.
  void resume() {
    paused = false;
    posted();
  }
  /// There is something new to drive.
  void posted() {
    fresh = true;
    if (asleep && awaited())
      condition.notify_one();
  }

private:
  bool awaited() const { return !paused && needed(); }
  void run();

  const std::function<void()> drive;
  const std::function<bool()> needed;
  // Guarded by the lock.
  bool paused = false;
  bool fresh = false; ///< something was posted since the last turn
  bool asleep = false;
  bool stopping = false;
  std::condition_variable condition;
  std::thread thread; // last: it uses the others
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_TRANSPORT_MPI_PROGRESSTHREAD_H
