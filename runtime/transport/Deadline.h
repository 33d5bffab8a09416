//===- Deadline.h - When a wait gives up ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRANSPORT_DEADLINE_H
#define CHIMERA_RUNTIME_TRANSPORT_DEADLINE_H

#include <chrono>
#include <cstdio>
#include <string>

namespace chimera::runtime {

/// The moment at which a wait that begins now times out. A timeout of a year or
/// more never does.
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds timeout)
      : end(timeout >= std::chrono::hours(24 * 365) ? Clock::time_point::max()
                                                    : Clock::now() + timeout) {}

  bool passed() const {
    return end != Clock::time_point::max() && Clock::now() >= end;
  }

private:
  Clock::time_point end;
};

/// What a wait that gave up says; `what` is what it waited for.
inline std::string timedOut(std::chrono::milliseconds timeout,
                            const std::string &what) {
  char text[48];
  std::snprintf(text, sizeof(text), "timed out after %g s waiting for ",
                static_cast<double>(timeout.count()) / 1000);
  return text + what;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRANSPORT_DEADLINE_H
