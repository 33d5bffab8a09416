//===- Pace.h - How a loop of MPI calls passes time -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI says whether a request is complete, not whether its bytes are moving. But
// it moves them inside the call: one that found nothing to do is back within a
// fraction of a microsecond, one that moved a fragment of 32 KiB takes several.
// So a loop looks at how long its calls took. While bytes move nobody naps: of
// a message that is copied in and out by two processes each waits for the other
// after some fragments, and a nap of one throttles both.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CHANNEL_MPI_PACE_H
#define CHIMERA_RUNTIME_CHANNEL_MPI_PACE_H

#include <chrono>

namespace chimera::runtime::mpi {

class Pace {
public:
  using Clock = std::chrono::steady_clock;

  /// Whether every rank of this host has a core to itself, so that one that
  /// polls takes nothing from another. For this process, to be set before there
  /// is a second thread.
  static bool everyRankHasACore;

  /// Of a rank in a wait.
  Pace();

  /// Polls, but for the first turns, only for `polling` since the last motion.
  /// Naps for at most `longestNap`, and not before `patience` has passed.
  Pace(std::chrono::microseconds polling, std::chrono::microseconds patience,
       std::chrono::microseconds longestNap)
      : polling(polling), patience(patience), longestNap(longestNap) {}

  /// Begins anew: the next turns poll.
  void restart() {
    turns = 0;
    ended = {};
  }

  /// Makes `calls`, returns what they return and notes whether bytes moved.
  template <typename Calls> decltype(auto) during(Calls &&calls) {
    struct Noting {
      Pace &pace;
      Clock::time_point begin;
      ~Noting() {
        if (begin == Clock::time_point())
          return;
        pace.ended = Clock::now();
        if (pace.ended - begin > kMoving)
          pace.moved = pace.ended;
      }
    } noting{*this, turns <= kPolls ? Clock::time_point() : Clock::now()};
    return calls();
  }

  /// After calls without success: returns 0, at first at once, then after a
  /// yield, then returns for how long to nap, which grows with the time since
  /// the last motion.
  std::chrono::nanoseconds next();

  /// Passes that time.
  void pause();

private:
  static constexpr unsigned kPolls = 32;
  static constexpr std::chrono::microseconds kMoving{3};

  const std::chrono::microseconds polling;
  const std::chrono::microseconds patience;
  const std::chrono::microseconds longestNap;
  unsigned turns = 0;
  Clock::time_point moved; ///< last
  Clock::time_point ended; ///< the calls of this turn, if it was noted
};

} // namespace chimera::runtime::mpi

#endif // CHIMERA_RUNTIME_CHANNEL_MPI_PACE_H
