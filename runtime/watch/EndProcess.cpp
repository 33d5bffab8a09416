//===- EndProcess.cpp - Ends the process at once --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/EndProcess.h"

#include <atomic>
#include <exception>

using namespace chimera::runtime;

static std::atomic<void (*)(int)> chosen{nullptr};

void chimera::runtime::setEndProcess(void (*end)(int)) noexcept {
  chosen.store(end);
}

void chimera::runtime::endProcess(int status) noexcept {
  if (auto *end = chosen.load())
    end(status);
  std::terminate();
}
