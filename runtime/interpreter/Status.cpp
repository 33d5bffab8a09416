//===- Status.cpp - The activity of a rank --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Status.h"

#include "runtime/system/Utf8.h"

#include <chrono>
#include <cstring>
#include <sched.h>

using namespace chimera::runtime;

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<int32_t>::is_always_lock_free &&
                  std::atomic<double>::is_always_lock_free,
              "processes share these");

int64_t chimera::runtime::steadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Status::setUse(const StepUse &use) {
  residentBytes.store(use.residentBytes, std::memory_order_relaxed);
  deviceBytes.store(use.deviceBytes, std::memory_order_relaxed);
  waiting.store(use.waiting, std::memory_order_relaxed);
  measured.store(use.measured, std::memory_order_release);
}

StepUse Status::use() const {
  StepUse use;
  use.measured = measured.load(std::memory_order_acquire);
  use.residentBytes = residentBytes.load(std::memory_order_relaxed);
  use.deviceBytes = deviceBytes.load(std::memory_order_relaxed);
  use.waiting = waiting.load(std::memory_order_relaxed);
  return use;
}

void Status::fail(const std::string &text) {
  if (isFailing.exchange(1) != 0) {
    // Another thread is writing the reason. Wait until the reason is complete,
    // because the caller may read it after this call.
    for (int i = 0; i < 1000 && state.load() != Failed; ++i)
      sched_yield();
    return;
  }
  size_t size = utf8PrefixSize(text, reason.size() - 1);
  std::memcpy(reason.data(), text.data(), size);
  reason[size] = 0;
  failedIn.store(state.load());
  state.store(Failed);
}
