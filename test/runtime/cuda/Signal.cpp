//===- Signal.cpp - A counter for which threads can wait ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cuda/Signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

using namespace chimera::runtime::test;

void Signal::sleep(uint32_t seen, const std::chrono::microseconds *time) const {
  timespec most{};
  if (time)
    most = {static_cast<time_t>(time->count() / 1000000),
            static_cast<long>(time->count() % 1000000 * 1000)};
  syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, seen, time ? &most : nullptr,
          nullptr, 0);
}

void Signal::raise() {
  count.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Signal::reached(uint32_t wanted) const {
  // Do not acquire if the counter has not been reached: this thread must not
  // synchronise with the threads that have raised it so far.
  return count.load(std::memory_order_relaxed) >= wanted &&
         count.load(std::memory_order_acquire) >= wanted;
}

void Signal::wait(uint32_t wanted) const {
  for (uint32_t seen; (seen = count.load(std::memory_order_relaxed)) < wanted;)
    sleep(seen, nullptr);
  (void)count.load(std::memory_order_acquire);
}

bool Signal::waitFor(std::chrono::microseconds time, uint32_t wanted) const {
  uint32_t seen = count.load(std::memory_order_relaxed);
  if (seen < wanted)
    sleep(seen, &time);
  return reached(wanted);
}
