//===- Watchdog.h - Ends a process that waits for ever ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some waits for other ranks are inside a library that knows no timeout: when
// MPI starts, makes communicators or ends. No watcher helps then, because there
// is no status page yet, or no longer.
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

/// If the object still exists after `timeout`, calls `onExpiry` on another
/// thread, with a message that says what it waited for. Without `onExpiry` it
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
