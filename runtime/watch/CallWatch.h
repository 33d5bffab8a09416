//===- CallWatch.h - Detects hanging library calls --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread that detects MPI calls that do not return. A wait for a message
// calls MPI again and again until its timeout. But some MPI calls block in the
// kernel, although the standard says that they return immediately. During such
// a call, the wait cannot check its timeout. So a separate thread checks a few
// times a second in which MPI call each thread of the rank is. The threads mark
// their calls (system/CallMark.h).
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

/// A call is reported if it takes longer than the timeout of waits plus this
/// time.
inline constexpr std::chrono::seconds kCallMargin(2);

/// Watches calls while this object lives. If a call lasts longer than `timeout`
/// plus kCallMargin, calls `onExpiry` once, on its own thread, with a message
/// that names the call.
class CallWatch {
public:
  /// `readCalls` returns the current call of each thread, always in the same
  /// order of threads. If its first result is empty, there is nothing to watch
  /// and no thread starts.
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
  std::thread thread; // last member, because the thread uses the others
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_CALLWATCH_H
