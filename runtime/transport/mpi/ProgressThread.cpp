//===- ProgressThread.cpp - Moves messages while a rank computes ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/ProgressThread.h"

#include "runtime/transport/mpi/Pace.h"

#include <atomic>
#include <sched.h>
#include <utility>

using namespace chimera::runtime::mpi;
using namespace std::chrono_literals;

namespace {
std::mutex mutex;
std::atomic<int> ranksWaiting{0};
} // namespace

std::unique_lock<std::mutex> chimera::runtime::mpi::enter() {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (lock)
    return lock;
  ranksWaiting.fetch_add(1);
  // A progress thread mostly leaves in less time than it takes to sleep.
  for (int turn = 0; turn < 200 && !lock.try_lock(); ++turn)
    sched_yield();
  if (!lock)
    lock.lock();
  ranksWaiting.fetch_sub(1);
  return lock;
}

bool chimera::runtime::mpi::rankWantsIn() { return ranksWaiting.load() > 0; }

ProgressThread::ProgressThread(std::function<void()> drive,
                               std::function<bool()> needed)
    : drive(std::move(drive)), needed(std::move(needed)),
      thread([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    std::unique_lock lock = enter();
    stopping = true;
    condition.notify_one();
  }
  thread.join();
}

void ProgressThread::run() {
  // To wake it costs the rank some microseconds: not more often than this.
  constexpr std::chrono::microseconds kAwake = 1ms, kRest = 100us;
  Pace pace(300us, 200us);
  auto woken = Pace::Clock::now();
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!awaited()) {
      if (Pace::Clock::now() - woken < kAwake) {
        condition.wait_for(lock, kRest);
        continue;
      }
      asleep = true;
      condition.wait(lock, [&] { return stopping || awaited(); });
      asleep = false;
      woken = Pace::Clock::now();
      continue;
    }
    if (std::exchange(fresh, false))
      pace.restart();
    pace.during(drive);
    lock.unlock();
    std::chrono::nanoseconds nap = pace.next();
    // The lock goes to whoever is awake, so a rank could wait for it for long.
    while (rankWantsIn())
      sched_yield();
    lock.lock();
    if (nap.count() == 0)
      continue;
    asleep = true;
    condition.wait_for(lock, nap, [&] { return stopping || fresh; });
    asleep = false;
  }
}
