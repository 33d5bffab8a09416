//===- Signals.h - One thread reads the signals -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SIGINT and SIGTERM end a run. SIGUSR1 stops it at the end of a step. SIGUSR2
// asks for a checkpoint at the end of a step. With a grace time, the first
// SIGINT or SIGTERM only stops the run at the end of a step. The run ends
// earlier if the grace time passes or if a second SIGINT or SIGTERM comes. All
// threads block these four signals, and one thread reads them with sigwait.
// There is no signal handler. So the reaction to a signal may lock mutexes,
// allocate memory and write.
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

/// "SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", else "signal N".
std::string signalName(int signal);

/// The grace time: the time for which a run may continue after the first SIGINT
/// or SIGTERM.
struct Grace {
  std::chrono::milliseconds time;
  /// Called with the first SIGINT or SIGTERM, on the thread that reads signals.
  std::function<void(int)> onBegin = {};
  /// Says what is not saved, such as "the weights are not saved". The report of
  /// a run has this text if the run ends before it has saved its state.
  std::string unsaved = {};
};

class Signals {
public:
  /// With a grace time, a second SIGINT or SIGTERM within this time is ignored:
  /// the command `timeout` and some launchers send a signal to the process and
  /// also to its process group.
  static constexpr std::chrono::milliseconds kRepeatTime{500};

  /// Blocks SIGUSR1 and SIGUSR2. So they stay pending, also after an exec,
  /// until a Signals object reads them. SIGINT and SIGTERM are not blocked and
  /// end the process, because there is nothing to report or save yet. Call it
  /// before any thread starts.
  static void blockUserSignals();

  /// Blocks the four signals and starts the thread that reads them. If SIGINT
  /// or SIGTERM is ignored (for example because of nohup), it stays ignored.
  /// Requires that the process has no other thread: threads that start later
  /// inherit the signal mask. Only one object may exist at a time. Without a
  /// grace time, SIGINT and SIGTERM end the run at once.
  explicit Signals(std::optional<Grace> grace = std::nullopt);
  /// Ends the thread that reads signals. The signals stay blocked.
  ~Signals();
  Signals(const Signals &) = delete;
  Signals &operator=(const Signals &) = delete;

  /// The signal that asked the run to stop at the end of a step: the SIGINT or
  /// SIGTERM that began the grace time, or SIGUSR1. 0 if there is none.
  int stopSignal() const { return askedBy.load(); }

  /// For a listener that ends the run. If a grace time has begun, returns a
  /// text that says why the run ends before it has saved its state, and
  /// Grace::unsaved. Otherwise returns an empty text.
  std::string unsavedText() const;

private:
  friend class SignalListener;
  void handleSignals();
  int next();
  void act(int signal);
  void tell(int signal);
  void listen(std::function<void(int)> onSignal);

  sigset_t set;
  std::mutex mutex;
  std::function<void(int)> listener; // guarded by mutex
  // The user signals that no listener has heard. Guarded by mutex.
  bool askedToStop = false, askedToSave = false;
  const std::optional<Grace> grace;
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> graceBegin; // only for `thread`
  std::atomic<int> askedBy{0};
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// While this object lives, `onSignal` is called with the number of each
/// signal, on the thread that reads signals. SIGUSR1 means that the run must
/// stop after a step, and SIGUSR2 that it must write a checkpoint after a step.
/// SIGINT and SIGTERM mean that the run must end. For a signal that begins the
/// grace time, `onSignal` is called with SIGUSR1, and when the grace time is
/// over, it is called with the signal. If SIGUSR1 or SIGUSR2 came before this
/// object existed, the constructor calls `onSignal`. While no SignalListener
/// exists, SIGINT and SIGTERM end the process with status 128 + signal.
class SignalListener {
public:
  /// If `signals` is null, `onSignal` is never called.
  SignalListener(Signals *signals, std::function<void(int)> onSignal)
      : signals(signals) {
    if (signals)
      signals->listen(std::move(onSignal));
  }
  /// If `onSignal` is running, waits until it returns.
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
