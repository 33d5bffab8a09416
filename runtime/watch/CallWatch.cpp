//===- CallWatch.cpp - Detects hanging library calls ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/CallWatch.h"

#include "runtime/system/Deadline.h"
#include "runtime/watch/Report.h"

#include <algorithm>

using namespace chimera::runtime;
using std::chrono::milliseconds;

static constexpr milliseconds kLook(200);

CallWatch::CallWatch(std::function<std::vector<CallMark::Call>()> readCalls,
                     milliseconds timeout,
                     std::function<void(const std::string &)> onExpiry)
    : readCalls(std::move(readCalls)), onExpiry(std::move(onExpiry)) {
  if (timeout >= kForever || this->readCalls().empty())
    return;
  thread = std::thread([this, limit = timeout + kCallMargin] {
    runOrEnd("watching calls", [&] { watch(limit); });
  });
}

void CallWatch::watch(milliseconds limit) {
  using Clock = Deadline::Clock;
  std::vector<CallMark::Call> last = readCalls();
  std::vector<Deadline> deadlines(last.size(), Deadline(limit));
  std::unique_lock lock(mutex);
  while (!condition.wait_for(lock, kLook, [this] { return isDone; })) {
    // This thread may be stopped here. So a call begins at the latest after it
    // was read for the first time, and lasts at least until before it is read.
    const Clock::time_point before = Clock::now();
    const std::vector<CallMark::Call> now = readCalls();
    const Clock::time_point after = Clock::now();
    for (size_t i = 0; i < now.size(); ++i) {
      if (!now[i].name || now[i] != last[i])
        deadlines[i] = Deadline(limit, after);
      else if (deadlines[i].passed(before))
        return onExpiry(
            timeoutMessage(limit, now[i].name + std::string(" to return")));
    }
    last = now;
  }
}

CallWatch::~CallWatch() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    isDone = true;
  }
  condition.notify_all();
  thread.join();
}
