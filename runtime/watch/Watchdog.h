//===- Watchdog.h - Ends a process that hangs -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A timeout for library calls that wait for other ranks and have no timeout:
// the calls that start MPI, create communicators or end MPI. During these
// calls, there is no Watcher, because the status page does not exist yet or no
// longer exists.
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

/// If this object still exists after `timeout`, it calls `onExpiry` on its own
/// thread, with an error message. `what` is the object of the wait in this
/// message. If `onExpiry` is empty, writes the message to standard error and
/// ends the process with status 1.
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
