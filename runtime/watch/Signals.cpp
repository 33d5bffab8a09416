//===- Signals.cpp - One thread reads the signals -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Signals.h"

#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <unistd.h>
#include <utility>

using namespace chimera::runtime;

std::string chimera::runtime::signalName(int signal) {
  switch (signal) {
  case SIGINT:
    return "SIGINT";
  case SIGTERM:
    return "SIGTERM";
  case SIGUSR1:
    return "SIGUSR1";
  case SIGUSR2:
    return "SIGUSR2";
  default:
    return "signal " + std::to_string(signal);
  }
}

void Signals::blockUserSignals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &both, nullptr);
}

Signals::Signals(std::optional<Grace> grace) : grace(std::move(grace)) {
  sigemptyset(&set);
  // SIGUSR1 is always in the set, because the destructor uses it to wake the
  // thread that reads signals.
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread = std::thread([this] { handleSignals(); });
}

Signals::~Signals() {
  ending.store(true);
  pthread_kill(thread.native_handle(), SIGUSR1);
  thread.join();
}

void Signals::handleSignals() {
  for (;;) {
    const int signal = next();
    if (ending.load())
      return;
    if (signal == 0)
      continue;
    std::lock_guard lock(mutex);
    act(signal);
  }
}

/// Waits for the next signal and returns it. During a grace time, returns the
/// signal that began it when the grace time is over. Returns 0 if the wait was
/// interrupted.
int Signals::next() {
  if (!graceBegin) {
    int signal = 0;
    return sigwait(&set, &signal) == 0 ? signal : 0;
  }
  const auto left = std::max<std::chrono::nanoseconds>(
      *graceBegin + grace->time - Clock::now(), std::chrono::nanoseconds(0));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = (left - seconds).count()};
  const int signal = sigtimedwait(&set, nullptr, &limit);
  if (signal > 0)
    return signal;
  return errno == EAGAIN ? stopSignal() : 0;
}

void Signals::act(int signal) {
  if (signal == SIGUSR1) {
    int none = 0;
    askedBy.compare_exchange_strong(none, SIGUSR1);
    return tell(SIGUSR1);
  }
  if (signal == SIGUSR2)
    return tell(SIGUSR2);
  const Clock::time_point now = Clock::now();
  if (!grace || !listener ||
      (graceBegin && now >= *graceBegin + std::min<Clock::duration>(
                                              kRepeatTime, grace->time)))
    return tell(signal);
  if (graceBegin)
    return;
  graceBegin = now;
  askedBy.store(signal);
  tell(SIGUSR1);
  if (grace->onBegin)
    runOrEnd("handling a signal", [&] { grace->onBegin(signal); });
}

std::string Signals::unsavedText() const {
  if (!graceBegin)
    return {};
  char time[48];
  std::snprintf(time, sizeof time, ", %g s after the first signal",
                std::chrono::duration<double>(grace->time).count());
  return (Clock::now() >= *graceBegin + grace->time ? time
                                                    : ", at a second signal") +
         (grace->unsaved.empty() ? "" : ": " + grace->unsaved);
}

void Signals::tell(int signal) {
  if (listener)
    runOrEnd("handling a signal", [&] { listener(signal); });
  else if (signal == SIGUSR1)
    askedToStop = true;
  else if (signal == SIGUSR2)
    askedToSave = true;
  else
    endProcess(128 + signal);
}

void Signals::listen(std::function<void(int)> onSignal) {
  std::lock_guard lock(mutex);
  listener = std::move(onSignal);
  if (listener && std::exchange(askedToStop, false))
    listener(SIGUSR1);
  if (listener && std::exchange(askedToSave, false))
    listener(SIGUSR2);
}
