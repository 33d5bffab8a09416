//===- Pace.cpp - How a loop of MPI calls passes time ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Pace.h"

#include <algorithm>
#include <sched.h>
#include <time.h>
#include <utility>

using namespace chimera::runtime::mpi;
using namespace std::chrono_literals;

bool Pace::everyRankHasACore = false;

// 4 MiB take some 0.5 ms, of which a nap would be a sizeable part. Where ranks
// share cores, one that naps makes way for those that have something to do.
Pace::Pace()
    : Pace(everyRankHasACore ? 50us : 0us, everyRankHasACore ? 1000us : 50us,
           50us) {}

std::chrono::nanoseconds Pace::next() {
  // A reading of the clock is a sizeable part of a poll: the first go without.
  if (turns < kPolls) {
    ++turns;
    return {};
  }
  Clock::time_point now = std::exchange(ended, {});
  if (now == Clock::time_point())
    now = Clock::now();
  if (turns == kPolls) {
    ++turns;
    moved = now;
  }
  Clock::duration idle = now - moved;
  if (idle < polling)
    return {};
  if (idle < patience) {
    sched_yield();
    return {};
  }
  // What took long may be noticed a little late.
  return std::clamp<std::chrono::nanoseconds>(idle / 16, 20us, longestNap);
}

void Pace::pause() {
  std::chrono::nanoseconds nap = next();
  if (nap.count() == 0)
    return;
  timespec time{0, nap.count()};
  nanosleep(&time, nullptr);
}
