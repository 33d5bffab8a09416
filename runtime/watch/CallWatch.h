//===- CallWatch.h - Notices library calls that do not return ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A wait over MPI asks MPI again and again, and gives up when its time is over.
// It cannot if MPI does not return: MPI's calls may block in the kernel, though
// the standard says that they do not. This thread looks a few times a second at
// the calls that are under way; a rank that makes one does nothing for it but
// mark it (system/CallMark.h).
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

/// How much longer than a wait may last one call of it may.
inline constexpr std::chrono::seconds kCallMargin(2);

/// If a call is under way for longer than `timeout` and kCallMargin, calls
/// `onExpiry` on another thread, once, with a message that names the call.
class CallWatch {
public:
  /// `look` returns the calls under way, one for each thread that may make
  /// some, in the same order every time. Where it returns none at first there
  /// is nothing to watch.
  CallWatch(std::function<std::vector<CallMark::Seen>()> look,
            std::chrono::milliseconds timeout,
            std::function<void(const std::string &)> onExpiry);
  ~CallWatch();
  CallWatch(const CallWatch &) = delete;
  CallWatch &operator=(const CallWatch &) = delete;

private:
  void watch(std::chrono::milliseconds limit);

  const std::function<std::vector<CallMark::Seen>()> look;
  const std::function<void(const std::string &)> onExpiry;
  std::mutex mutex;
  std::condition_variable condition;
  bool isDone = false;
  std::thread thread; // last: it uses the others
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_CALLWATCH_H
