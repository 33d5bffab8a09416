//===- FutexEvent.h - Wakes one sleeping thread -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_FUTEXEVENT_H
#define CHIMERA_RUNTIME_SYSTEM_FUTEXEVENT_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace chimera::runtime {

/// A futex on which one thread sleeps until other threads have work for it.
///
/// A producer publishes its data and then calls notify(). The consumer reads
/// count() and then looks for data. If there is no data, it calls sleep() with
/// this count. If a producer has called notify() in the meantime, the count has
/// changed and sleep() returns at once. So no notification is lost. notify()
/// makes no system call if no thread sleeps.
class alignas(64) FutexEvent {
public:
  uint32_t count() const { return notifications.load(); }

  void notify() {
    notifications.fetch_add(1);
    if (sleeping.load())
      syscall(SYS_futex, &notifications, FUTEX_WAKE_PRIVATE, 1, nullptr,
              nullptr, 0);
  }

  /// Sleeps until notify() is called, but at most for `limit`. Returns at once
  /// if the count is not `seen`. May also return early. Requires `limit` < 1 s.
  void sleep(uint32_t seen, std::chrono::nanoseconds limit) {
    timespec time{0, limit.count()};
    sleeping.store(1);
    if (notifications.load() == seen)
      syscall(SYS_futex, &notifications, FUTEX_WAIT_PRIVATE, seen, &time,
              nullptr, 0);
    sleeping.store(0);
  }

private:
  std::atomic<uint32_t> notifications{0};
  std::atomic<uint32_t> sleeping{0};
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_FUTEXEVENT_H
