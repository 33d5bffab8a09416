//===- Watchdog.cpp - Ends a process that waits for ever ------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Watchdog.h"

#include "runtime/core/Report.h"
#include "runtime/transport/Deadline.h"

#include <unistd.h>

using namespace chimera::runtime;

Watchdog::Watchdog(std::chrono::milliseconds timeout, std::string what)
    : thread([this, timeout, what = std::move(what)] {
        std::unique_lock lock(mutex);
        if (condition.wait_for(lock, timeout, [this] { return isDone; }))
          return;
        writeReport(timedOut(timeout, what) + "\n");
        _exit(1);
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex);
    isDone = true;
  }
  condition.notify_all();
  thread.join();
}
