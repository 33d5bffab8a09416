//===- Watchdog.h - Ends a process that waits for ever ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some waits for other ranks are inside a library that knows no timeout: to
// start MPI, to make communicators, to leave. Nobody watches then either: the
// status page is not there yet, or no more.
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

/// From when it is made until it is dropped this may take `timeout`: then
/// `onExpiry` is told, on another thread, that it waited for `what`. Without
/// one the process ends with status 1 and says so.
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
