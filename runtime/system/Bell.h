//===- Bell.h - Where one thread sleeps -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_BELL_H
#define CHIMERA_RUNTIME_SYSTEM_BELL_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace chimera::runtime {

/// Wakes a thread that waits for news. Whoever has some makes them visible and
/// then rings; the thread reads the count, looks whether there are news, and
/// sleeps unless the count has changed since. A ring that wakes nobody makes no
/// system call.
class alignas(64) Bell {
public:
  uint32_t count() const { return rings.load(); }

  void ring() {
    rings.fetch_add(1);
    if (sleeping.load())
      syscall(SYS_futex, &rings, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps until the count differs from `seen`, at most for `limit`, which is
  /// less than a second.
  void sleep(uint32_t seen, std::chrono::nanoseconds limit) {
    timespec time{0, limit.count()};
    sleeping.store(1);
    if (rings.load() == seen)
      syscall(SYS_futex, &rings, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
    sleeping.store(0);
  }

private:
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleeping{0};
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_BELL_H
