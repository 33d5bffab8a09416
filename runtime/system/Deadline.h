//===- Deadline.h - When a wait gives up ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_DEADLINE_H
#define CHIMERA_RUNTIME_SYSTEM_DEADLINE_H

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace chimera::runtime {

/// A timeout that never passes. So are all longer ones.
inline constexpr std::chrono::hours kForever(24 * 365);

/// When a wait that begins now times out.
///
/// Whoever waits asks several times a second. Of a longer time between two
/// questions only a second counts: the process was stopped (Ctrl-Z, a debugger,
/// a suspended job), and a wait does not fail for that when it goes on.
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds timeout,
                    Clock::time_point now = Clock::now())
      : isNever(timeout >= kForever),
        left(std::min<std::chrono::milliseconds>(timeout, kForever)),
        asked(now) {}

  bool passed(Clock::time_point now = Clock::now()) {
    if (isNever)
      return false;
    left -= std::min<Clock::duration>(now - asked, std::chrono::seconds(1));
    asked = now;
    return left <= Clock::duration::zero();
  }

private:
  bool isNever;
  Clock::duration left;
  Clock::time_point asked; ///< last
};

/// The timeout of who watches another's waits, which is patient for longer: a
/// wait that times out has more to say.
inline std::chrono::milliseconds afterWaits(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(timeout, kForever) +
         std::chrono::milliseconds(500);
}

/// What a wait that gave up says; `what` is what it waited for.
inline std::string timedOut(std::chrono::milliseconds timeout,
                            const std::string &what) {
  char text[48];
  std::snprintf(text, sizeof(text), "timed out after %g s waiting for ",
                static_cast<double>(timeout.count()) / 1000);
  return text + what;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_DEADLINE_H
