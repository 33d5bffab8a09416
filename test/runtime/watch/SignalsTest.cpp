//===- SignalsTest.cpp - One thread reads the signals ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Signals.h"

#include "runtime/watch/EndProcess.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iostream>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Waits until `heard` is `expected`, but not for ever. Returns whether it is.
bool comesTrue(const std::atomic<int> &heard, int expected) {
  for (int i = 0; i < 10000 && heard.load() != expected; ++i)
    std::this_thread::sleep_for(10ms);
  return heard.load() == expected;
}

TEST(Signals, AreStoredForALaterListenerAndPassedToAPresentOne) {
  Signals::blockUserSignals();
  kill(getpid(), SIGUSR1);
  Signals signals;
  std::atomic<int> heard = 0;
  {
    SignalListener listening(&signals,
                             [&](int signal) { heard.store(signal); });
    EXPECT_TRUE(comesTrue(heard, SIGUSR1)) << "came before";
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(comesTrue(heard, SIGTERM));
  }
  kill(getpid(), SIGUSR1);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(heard.load(), SIGTERM);
  SignalListener listening(&signals, [&](int signal) { heard.store(signal); });
  EXPECT_TRUE(comesTrue(heard, SIGUSR1));
}

TEST(Signals, PassARequestToSave) {
  Signals::blockUserSignals();
  kill(getpid(), SIGUSR2);
  Signals signals(Grace{1h});
  for (int time = 0; time < 2; ++time) {
    std::atomic<int> heard = 0;
    SignalListener listening(&signals,
                             [&](int signal) { heard.store(signal); });
    if (time > 0)
      kill(getpid(), SIGUSR2);
    EXPECT_TRUE(comesTrue(heard, SIGUSR2)) << "time " << time;
  }
  EXPECT_EQ(signals.stopSignal(), 0);
  EXPECT_EQ(signalName(SIGUSR2), "SIGUSR2");
}

TEST(Signals, EndTheProcessWhereNobodyListens) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals;
        kill(getpid(), SIGINT);
        sleep(1000);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(Signals, EndTheProcessWhereTheListenerFails) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals;
        SignalListener listening(&signals, [](int) { throw std::bad_alloc(); });
        kill(getpid(), SIGTERM);
        sleep(1000);
      },
      testing::ExitedWithCode(1),
      ": failed while handling a signal: std::bad_alloc");
}

/// Keeps the signals that a listener reports.
class ReceivedSignals {
public:
  void add(int signal) {
    std::lock_guard lock(mutex);
    signals.push_back(signal);
  }
  std::vector<int> get() {
    std::lock_guard lock(mutex);
    return signals;
  }
  bool becomes(const std::vector<int> &expected) {
    for (int i = 0; i < 10000 && get() != expected; ++i)
      std::this_thread::sleep_for(10ms);
    return get() == expected;
  }
  /// Waits until there are `expected` signals SIGUSR1, but not for ever.
  void awaitStops(std::ptrdiff_t expected) {
    for (int i = 0; i < 10000 && std::ranges::count(get(), SIGUSR1) < expected;
         ++i)
      std::this_thread::sleep_for(10ms);
  }

private:
  std::mutex mutex;
  std::vector<int> signals; // guarded by mutex
};

/// Whether a signal to this process has come but no thread has read it.
bool isPending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

/// Sends `signal` twice. Returns false if this took so long that the second one
/// may count.
bool repeatInGraceTime(int signal) {
  ReceivedSignals told, begun;
  Signals signals(Grace{1h, [&](int which) { begun.add(which); }});
  SignalListener listening(&signals, [&](int which) { told.add(which); });
  EXPECT_EQ(signals.stopSignal(), 0);
  const auto begin = std::chrono::steady_clock::now();
  kill(getpid(), signal);
  EXPECT_TRUE(told.becomes({SIGUSR1}));
  EXPECT_TRUE(begun.becomes({signal}));
  EXPECT_EQ(signals.stopSignal(), signal);
  // A launcher may send a signal to both the process and its process group. The
  // second signal, soon after the first, does not count.
  kill(getpid(), signal);
  while (isPending(signal))
    std::this_thread::sleep_for(1ms);
  kill(getpid(), SIGUSR1);
  told.awaitStops(2);
  if (std::chrono::steady_clock::now() - begin >= Signals::kRepeatTime)
    return false;
  EXPECT_EQ(told.get(), (std::vector<int>{SIGUSR1, SIGUSR1}));
  EXPECT_EQ(signals.stopSignal(), signal);
  std::this_thread::sleep_for(Signals::kRepeatTime + 50ms);
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(told.becomes({SIGUSR1, SIGUSR1, SIGTERM}));
  EXPECT_EQ(begun.get(), std::vector<int>{signal});
  return true;
}

TEST(Signals, OfTheGraceTimeAskToStopAndThenEnd) {
  for (int signal : {SIGINT, SIGTERM}) {
    int attempts = 1;
    while (attempts < 50 && !repeatInGraceTime(signal)) {
      std::cout << signalName(signal) << ", attempt " << attempts
                << ": the second signal came too late" << std::endl;
      ++attempts;
    }
    EXPECT_LT(attempts, 50) << "the machine is too busy";
  }
}

TEST(Signals, EndTheRunWhenTheGraceTimeIsOver) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals(Grace{200ms});
        const auto begin = std::chrono::steady_clock::now();
        SignalListener listening(&signals, [&](int signal) {
          if (signal != SIGUSR1)
            _exit(std::chrono::steady_clock::now() - begin < 200ms ? 1
                                                                   : signal);
        });
        kill(getpid(), SIGTERM);
        sleep(1000);
      },
      testing::ExitedWithCode(SIGTERM), "");
}

// A run that ends before it has saved its state says so.
TEST(Signals, SayWhatIsNotSavedIfTheGraceTimeIsNotEnough) {
  const auto end = [](std::optional<Grace> grace, int signals) {
    setEndProcess([](int status) { _exit(status); });
    Signals all(std::move(grace));
    std::atomic<bool> hasBegun = false;
    SignalListener listening(&all, [&](int signal) {
      if (signal == SIGUSR1)
        return hasBegun.store(true);
      std::cerr << "ended" << all.unsavedText() << std::endl;
      _exit(3);
    });
    for (int i = 0; i < signals; ++i) {
      kill(getpid(), SIGTERM);
      while (!hasBegun.load())
        std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(2 * Signals::kRepeatTime);
    }
    sleep(1000);
  };
  EXPECT_EXIT(end(Grace{200ms, {}, "all is lost"}, 1),
              testing::ExitedWithCode(3),
              "^ended, 0.2 s after the first signal: all is lost\n$");
  EXPECT_EXIT(end(Grace{1h, {}, "all is lost"}, 2), testing::ExitedWithCode(3),
              "^ended, at a second signal: all is lost\n$");
  EXPECT_EXIT(end(std::nullopt, 1), testing::ExitedWithCode(3), "^ended\n$");
}

TEST(Signals, EndTheProcessWhereNobodyListensInSpiteOfAGraceTime) {
  EXPECT_EXIT(
      {
        setEndProcess([](int status) { _exit(status); });
        Signals signals(Grace{1h});
        kill(getpid(), SIGTERM);
        sleep(1000);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Signals, AreStoppedByTheDestructor) {
  for (int i = 0; i < 100; ++i)
    Signals signals;
}
} // namespace
