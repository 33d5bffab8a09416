//===- Signals.cpp - One thread reads the signals -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Signals.h"

#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Report.h"

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
  default:
    return "signal " + std::to_string(signal);
  }
}

void Signals::holdBack() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

Signals::Signals() {
  sigemptyset(&set);
  // The destructor uses it to wake the reader.
  sigaddset(&set, SIGUSR1);
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread = std::thread([this] { read(); });
}

Signals::~Signals() {
  ending.store(true);
  pthread_kill(thread.native_handle(), SIGUSR1);
  thread.join();
}

void Signals::read() {
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0)
      continue;
    if (ending.load())
      return;
    std::lock_guard lock(mutex);
    if (listener)
      runOrEnd("acting on a signal", [&] { listener(signal); });
    else if (signal == SIGUSR1)
      askedToStop = true;
    else
      endProcess(128 + signal);
  }
}

void Signals::listen(std::function<void(int)> onSignal) {
  std::lock_guard lock(mutex);
  listener = std::move(onSignal);
  if (listener && std::exchange(askedToStop, false))
    listener(SIGUSR1);
}
