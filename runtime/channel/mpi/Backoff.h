//===- Backoff.h - How a polling loop waits ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI says whether a request is complete, but not whether its bytes are moving.
// However, MPI moves bytes inside the calls: a call with nothing to do returns
// within a fraction of a microsecond, and a call that moves a fragment of 32
// KiB takes several microseconds. So Backoff measures how long the calls of a
// polling loop take. The loop does not nap while bytes move: when two processes
// copy a message in and out of shared memory, each waits for the other after a
// few fragments, so a nap of one slows both down.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_BACKOFF_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_BACKOFF_H

#include <chrono>

namespace chimera::runtime::mpi {

class Backoff {
public:
  using Clock = std::chrono::steady_clock;

  /// Whether every rank of this host has a core to itself, so that polling
  /// takes no core from another rank. One value for the process. Set it before
  /// a second thread starts.
  static bool everyRankHasACore;

  /// The backoff for the waits of a rank.
  Backoff();

  /// A turn is one iteration of the loop. In the first kPolls turns, the loop
  /// polls. Then it polls until `polling` has passed since bytes last moved.
  /// Then it yields until `patience` has passed since then. Then it naps for at
  /// most `longestNap` at a time.
  Backoff(std::chrono::microseconds polling, std::chrono::microseconds patience,
          std::chrono::microseconds longestNap)
      : polling(polling), patience(patience), longestNap(longestNap) {}

  /// Begins again with kPolls turns that poll.
  void restart() {
    turns = 0;
    ended = {};
  }

  /// Runs `calls`, the MPI calls of this turn, and returns their result. Notes
  /// that bytes have moved if the calls took longer than kMoving.
  template <typename Calls> decltype(auto) runMeasured(Calls &&calls) {
    struct Noting {
      Backoff &backoff;
      Clock::time_point begin;
      ~Noting() {
        if (begin == Clock::time_point())
          return;
        backoff.ended = Clock::now();
        if (backoff.ended - begin > kMoving)
          backoff.moved = backoff.ended;
      }
    } noting{*this, turns <= kPolls ? Clock::time_point() : Clock::now()};
    return calls();
  }

  /// Called after a turn in which the operation did not complete. Returns how
  /// long to nap. This is 0 while the loop polls or yields (`next` yields
  /// itself), and then grows with the time since bytes last moved.
  std::chrono::nanoseconds next();

  /// Calls `next` and naps.
  void pause();

private:
  static constexpr unsigned kPolls = 32;
  static constexpr std::chrono::microseconds kMoving{3};

  const std::chrono::microseconds polling;
  const std::chrono::microseconds patience;
  const std::chrono::microseconds longestNap;
  unsigned turns = 0;
  Clock::time_point moved; ///< when bytes last moved
  Clock::time_point ended; ///< the end of this turn's calls, if measured
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_BACKOFF_H
