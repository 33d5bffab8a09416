//===- Signals.h - One thread reads the signals -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SIGINT and SIGTERM end a run, SIGUSR1 asks it to stop at the end of a step.
// With a grace time, the first SIGINT or SIGTERM asks likewise, and the run
// ends when the time is over or another one comes. They are blocked in every
// thread, and one thread takes them with sigwait: no handler runs, so what they
// cause may lock, allocate and write as it likes.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_WATCH_SIGNALS_H
#define CHIMERA_RUNTIME_WATCH_SIGNALS_H

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace chimera::runtime {

/// "SIGINT", "SIGTERM", "SIGUSR1", else "signal N".
std::string signalName(int signal);

/// How long a run may go on after the first SIGINT or SIGTERM.
struct Grace {
  std::chrono::milliseconds time;
  /// Hears of that signal, on the thread that reads signals.
  std::function<void(int)> onBegin = {};
};

class Signals {
public:
  /// A signal that comes again this soon is the same one: `timeout` and some
  /// launchers send it to the process and to its group.
  static constexpr std::chrono::milliseconds kSame{500};

  /// Keeps SIGUSR1 pending, also over an exec, until a Signals reads it. SIGINT
  /// and SIGTERM still end the process until then, since there is nothing to
  /// report or to save yet. To be called before any thread starts.
  static void holdBack();

  /// Takes over the three signals. A signal that is ignored (by nohup, say)
  /// stays ignored. Requires that the process has no other thread; threads that
  /// start later inherit the mask. There may be one object at a time. Without a
  /// grace time SIGINT and SIGTERM end the run at once.
  explicit Signals(std::optional<Grace> grace = std::nullopt);
  /// The signals stay blocked.
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  /// The signal that asked the run to stop: the first SIGINT or SIGTERM, else
  /// SIGUSR1, else 0.
  int asked() const { return askedBy.load(); }

private:
  friend class Listening;
  void read();
  int next();
  void act(int signal);
  void tell(int signal);
  void listen(std::function<void(int)> onSignal);

  sigset_t set;
  std::mutex mutex;
  std::function<void(int)> listener; // guarded by mutex
  bool askedToStop = false;          // guarded by mutex
  const std::optional<Grace> grace;
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> graceBegin; // of the thread that reads
  std::atomic<int> askedBy{0};
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// While it lives, signals call a function, on their thread, with their number.
/// SIGUSR1 is to stop the run after the step, the others are to end it: a
/// signal that begins the grace time is told as SIGUSR1, and again as itself
/// when the time is over. A SIGUSR1 that came before is told at once. While
/// nobody listens, SIGINT and SIGTERM end the process with status 128 + signal.
class Listening {
public:
  /// Without `signals` nothing is heard.
  Listening(Signals *signals, std::function<void(int)> onSignal)
      : signals(signals) {
    if (signals)
      signals->listen(std::move(onSignal));
  }
  /// Returns when no call is under way.
  ~Listening() {
    if (signals)
      signals->listen(nullptr);
  }
  Listening(const Listening &) = delete;
  Listening &operator=(const Listening &) = delete;

private:
  Signals *signals;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_SIGNALS_H
