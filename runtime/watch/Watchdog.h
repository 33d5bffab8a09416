//===- Watchdog.h - Ends a process that hangs -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some waits for other ranks are inside a library call without a timeout: when
// MPI starts, creates communicators or ends. A Watcher does not help then,
// because the status page does not exist yet, or no longer exists.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_WATCHDOG_H
#define CHIMERA_RUNTIME_WATCH_WATCHDOG_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace chimera::runtime {

/// If this object still exists after `timeout`, it calls `onExpiry` on another
/// thread, with a message that says what it waited for. Without `onExpiry`, it
/// reports that message and ends the process with status 1.
class Watchdog {
public:
  Watchdog(std::chrono::milliseconds timeout, std::string what,
           std::function<void(const std::string &)> onExpiry = {});
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

private:
  std::mutex mutex;
  std::condition_variable condition;
  bool isDone = false;
  std::thread thread;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_WATCHDOG_H
