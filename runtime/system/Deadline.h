//===- Deadline.h - Timeouts and errors of waits ----------------*- C++ -*-===//
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
#include <stdexcept>
#include <string>

namespace chimera::runtime {

/// A Deadline with this timeout, or with a longer one, never passes.
inline constexpr std::chrono::hours kForever(24 * 365);

/// The end of a wait with a timeout. The wait begins when the Deadline is
/// created.
///
/// The waiting thread calls passed() several times a second. If more than one
/// second passes between two calls, it counts as one second: the process was
/// probably stopped (by Ctrl-Z, a debugger or a suspended job), and the wait
/// must not fail because of this.
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
  Clock::time_point asked; ///< time of the last call of passed()
};

/// The timeout of a thread that watches for hangs, if waits have the timeout
/// `timeout`. It is 500 ms longer, so that a wait times out before the watching
/// thread reports a hang. The error message of the wait says more.
inline std::chrono::milliseconds
watcherTimeout(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(timeout, kForever) +
         std::chrono::milliseconds(500);
}

/// The beginning of the error message of a wait that timed out.
inline constexpr char kTimedOut[] = "timed out after ";

/// The error message of a wait that timed out. `what` says what the wait was
/// for.
inline std::string timeoutMessage(std::chrono::milliseconds timeout,
                                  const std::string &what) {
  char text[48];
  std::snprintf(text, sizeof(text), "%s%g s waiting for ", kTimedOut,
                static_cast<double>(timeout.count()) / 1000);
  return text + what;
}

/// Thrown if a wait for other ranks timed out, or if another rank aborted the
/// run.
class WaitError : public std::runtime_error {
public:
  enum class Reason { TimedOut, Aborted };
  WaitError(Reason reason, const std::string &message)
      : std::runtime_error(message), reason(reason) {}
  Reason reason;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_DEADLINE_H
