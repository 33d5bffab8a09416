//===- ProgressThread.h - Moves messages while a rank computes --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H

#include "runtime/system/FutexEvent.h"

#include <functional>
#include <thread>

namespace chimera::runtime::mpi {

/// Calls `drive` repeatedly while the rank is outside MPI and operations are in
/// flight. While bytes move, and shortly after, the thread yields between
/// calls. Later it naps for at most 0.5 ms between calls. If there is nothing
/// to do, it sleeps.
class ProgressThread {
public:
  /// Starts the thread. `drive` must not throw. `drive` returns whether the
  /// thread must call it again because operations may be in flight.
  explicit ProgressThread(std::function<bool()> drive);
  ~ProgressThread();
  ProgressThread(const ProgressThread &) = delete;
  ProgressThread &operator=(const ProgressThread &) = delete;

  /// Tells the thread that the rank starts to compute while operations are in
  /// flight.
  void wake() {
    paused.store(false);
    fresh.store(true);
    event.notify();
  }
  /// From now until `wake`, only the rank drives MPI. Two threads would slow
  /// each other down.
  void pause() { paused.store(true); }

private:
  void run();

  const std::function<bool()> drive;
  FutexEvent event;
  std::atomic<bool> paused{true};
  std::atomic<bool> fresh{false}; ///< woken since the last iteration
  std::atomic<bool> stopping{false};
  std::thread thread; // last: it uses the other members
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H
