//===- CallWatch.h - Detects hanging library calls --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A wait over MPI polls MPI and gives up after its timeout. But if an MPI call
// does not return, the wait cannot give up: some calls block in the kernel,
// although the standard says that they return at once. So a separate thread
// checks a few times a second which call each thread of the rank is in. The
// rank only has to mark its calls (system/CallMark.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_CALLWATCH_H
#define CHIMERA_RUNTIME_WATCH_CALLWATCH_H

#include "runtime/system/CallMark.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace chimera::runtime {

/// A call is reported if it takes longer than the timeout of a wait plus this
/// time.
inline constexpr std::chrono::seconds kCallMargin(2);

/// If a call lasts longer than `timeout` plus kCallMargin, calls `onExpiry`
/// once, on another thread, with a message that names the call.
class CallWatch {
public:
  /// `readCalls` returns the current call of each thread that may make calls,
  /// always in the same order. If its first result is empty, nothing is
  /// watched.
  CallWatch(std::function<std::vector<CallMark::Call>()> readCalls,
            std::chrono::milliseconds timeout,
            std::function<void(const std::string &)> onExpiry);
  ~CallWatch();
  CallWatch(const CallWatch &) = delete;
  CallWatch &operator=(const CallWatch &) = delete;

private:
  void watch(std::chrono::milliseconds limit);

  const std::function<std::vector<CallMark::Call>()> readCalls;
  const std::function<void(const std::string &)> onExpiry;
  std::mutex mutex;
  std::condition_variable condition;
  bool isDone = false;
  std::thread thread; // last: it uses the other members
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_CALLWATCH_H
