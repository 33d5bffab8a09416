//===- ProgressThread.h - Moves messages while a rank computes --*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H

#include "runtime/system/Bell.h"

#include <functional>
#include <thread>

namespace chimera::runtime::mpi {

/// Calls `drive` over and over while the rank is outside MPI and something is
/// in flight. While bytes move, and shortly after, it yields between calls;
/// then it naps for at most 0.5 ms; while it has nothing to do it sleeps.
class ProgressThread {
public:
  /// Starts the thread. `drive` must not throw, and returns whether anything is
  /// still in flight.
  explicit ProgressThread(std::function<bool()> drive);
  ~ProgressThread();
  ProgressThread(const ProgressThread &) = delete;
  ProgressThread &operator=(const ProgressThread &) = delete;

  /// The rank is going to compute with something in flight.
  void wake() {
    paused.store(false);
    fresh.store(true);
    bell.ring();
  }
  /// The rank drives MPI itself until `wake`: two would be in
  /// each other's way.
  void pause() { paused.store(true); }

private:
  void run();

  const std::function<bool()> drive;
  Bell bell;
  std::atomic<bool> paused{true};
  std::atomic<bool> fresh{false}; ///< woken since the last turn
  std::atomic<bool> stopping{false};
  std::thread thread; // last: it uses the others
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_PROGRESSTHREAD_H
