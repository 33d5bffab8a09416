//===- Signals.h - One thread reads the signals -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SIGINT and SIGTERM end a run. SIGUSR1 stops it at the end of a step. With a
// grace time, the first SIGINT or SIGTERM also stops it at the end of a step,
// and the run ends if the grace time passes or another such signal comes. The
// signals are blocked in every thread, and one thread reads them with sigwait.
// There is no signal handler, so the reaction to a signal may lock, allocate
// and write freely.
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

/// How long a run may continue after the first SIGINT or SIGTERM.
struct Grace {
  std::chrono::milliseconds time;
  /// Called with that signal, on the thread that reads signals.
  std::function<void(int)> onBegin = {};
};

class Signals {
public:
  /// A signal that is repeated within this time counts once: `timeout` and some
  /// launchers send it both to the process and to its group.
  static constexpr std::chrono::milliseconds kRepeatTime{500};

  /// Keeps SIGUSR1 pending, also across an exec, until a Signals object reads
  /// it. SIGINT and SIGTERM still end the process until then, because there is
  /// nothing to report or save yet. Call it before any thread starts.
  static void blockUserSignal();

  /// Takes over the three signals. An ignored signal (because of nohup, for
  /// example) stays ignored. Requires that the process has no other thread;
  /// threads that start later inherit the signal mask. Only one object may
  /// exist at a time. Without a grace time SIGINT and SIGTERM end the run at
  /// once.
  explicit Signals(std::optional<Grace> grace = std::nullopt);
  /// The signals stay blocked.
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  /// The signal that asked the run to stop: the first SIGINT or SIGTERM, else
  /// SIGUSR1, else 0.
  int asked() const { return askedBy.load(); }

private:
  friend class SignalListener;
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
  std::optional<Clock::time_point> graceBegin; // used by the thread that reads
  std::atomic<int> askedBy{0};
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// While this object lives, signals call `onSignal` with their number, on the
/// thread that reads signals. SIGUSR1 means: stop after the step. Other signals
/// mean: end the run. A signal that begins the grace time is reported as
/// SIGUSR1, and again as itself when the grace time is over. A SIGUSR1 that
/// came earlier is reported at once. While no object listens, SIGINT and
/// SIGTERM end the process with status 128 + signal.
class SignalListener {
public:
  /// Without `signals` nothing is reported.
  SignalListener(Signals *signals, std::function<void(int)> onSignal)
      : signals(signals) {
    if (signals)
      signals->listen(std::move(onSignal));
  }
  /// Returns after a running call has ended.
  ~SignalListener() {
    if (signals)
      signals->listen(nullptr);
  }
  SignalListener(const SignalListener &) = delete;
  SignalListener &operator=(const SignalListener &) = delete;

private:
  Signals *signals;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_WATCH_SIGNALS_H
