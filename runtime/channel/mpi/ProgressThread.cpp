//===- ProgressThread.cpp - Moves messages while a rank computes ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/channel/mpi/ProgressThread.h"

#include "runtime/channel/mpi/Backoff.h"

#include <algorithm>
#include <sched.h>
#include <utility>

using namespace chimera::runtime::mpi;
using namespace std::chrono_literals;

ProgressThread::ProgressThread(std::function<bool()> drive)
    : drive(std::move(drive)), thread([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  stopping.store(true);
  event.notify();
  thread.join();
}

void ProgressThread::run() {
  // Waking a sleeping thread costs the rank some microseconds, and tens of
  // microseconds on a virtual machine. So after its work the thread first rests
  // for a while and cannot be woken; then it sleeps. The rest doubles each time
  // that the thread is woken and finds nothing to do.
  constexpr std::chrono::microseconds kRest = 500us, kLongestRest = 4ms;
  // If ranks share cores, nap sooner, so that a rank can use the core.
  Backoff backoff(0us, Backoff::everyRankHasACore ? 300us : 50us, 500us);
  std::chrono::microseconds rest = kRest;
  bool rested = true;
  bool inFlight = false;
  while (!stopping.load()) {
    uint32_t seen = event.count();
    if (fresh.exchange(false)) {
      // If the rank and this thread share a core, yield first, so that the rank
      // starts to compute or to sleep. A single call may copy a whole large
      // message and keep the core for that long.
      sched_yield();
      backoff.restart();
      inFlight = true;
    }
    if (paused.load() || !inFlight) {
      if (!std::exchange(rested, true)) {
        std::this_thread::sleep_for(rest);
        rest = std::min(2 * rest, kLongestRest);
        continue;
      }
      event.sleep(seen, 900ms);
      rested = false;
      continue;
    }
    rested = false;
    rest = kRest;
    inFlight = backoff.runMeasured(drive);
    std::chrono::nanoseconds nap = backoff.next();
    if (nap.count() > 0)
      event.sleep(seen, nap);
  }
}
