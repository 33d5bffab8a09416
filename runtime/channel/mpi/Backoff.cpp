//===- Backoff.cpp - How a polling loop waits -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/Backoff.h"

#include <algorithm>
#include <sched.h>
#include <time.h>
#include <utility>

using namespace chimera::runtime::mpi;
using namespace std::chrono_literals;

bool Backoff::everyRankHasACore = false;

// If every rank has a core, poll for longer before napping: a message of 4 MiB
// takes about 0.5 ms, and a nap would add a large part of that. If ranks share
// cores, nap sooner: this frees the core for ranks that have work.
Backoff::Backoff()
    : Backoff(everyRankHasACore ? 50us : 0us, everyRankHasACore ? 1000us : 50us,
              50us) {}

std::chrono::nanoseconds Backoff::next() {
  // Reading the clock takes a large part of the time of a poll, so the first
  // turns do not read it.
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
  // A nap may grow with the wait: a late wake-up matters less after a long
  // wait.
  return std::clamp<std::chrono::nanoseconds>(idle / 16, 20us, longestNap);
}

void Backoff::pause() {
  std::chrono::nanoseconds nap = next();
  if (nap.count() == 0)
    return;
  timespec time{0, nap.count()};
  nanosleep(&time, nullptr);
}
