//===- Watchdog.cpp - Ends a process that hangs ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Watchdog.h"

#include "runtime/system/Deadline.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

#include <algorithm>
#include <unistd.h>

using namespace chimera::runtime;

Watchdog::Watchdog(std::chrono::milliseconds timeout, std::string what,
                   std::function<void(const std::string &)> onExpiry)
    : thread([this, timeout, what = std::move(what),
              onExpiry = std::move(onExpiry)] {
        runOrEnd("watching a wait", [&] {
          constexpr std::chrono::milliseconds kLook(200);
          std::unique_lock lock(mutex);
          Deadline deadline(timeout);
          while (!condition.wait_for(lock, std::min(timeout, kLook),
                                     [this] { return isDone; })) {
            if (!deadline.passed())
              continue;
            std::string reason = timeoutMessage(timeout, what);
            if (onExpiry)
              return onExpiry(reason);
            writeReport(reason + "\n");
            endProcess(1);
          }
        });
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex);
    isDone = true;
  }
  condition.notify_all();
  thread.join();
}
