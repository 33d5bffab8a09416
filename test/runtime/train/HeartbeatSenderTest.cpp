//===- HeartbeatSenderTest.cpp - Heartbeats while the root works ----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/HeartbeatSender.h"

#include "runtime/control/InProcess.h"
#include "runtime/control/Messages.h"
#include "test/runtime/Timeouts.h"

#include <future>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
constexpr auto kTimeout = 400ms;

void expectNoHang(const std::string &reason) { ADD_FAILURE() << reason; }

void compute(std::chrono::milliseconds time) {
  auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end)
    ;
}

/// The error of a rank that waits for heartbeats of rank 0 until the last one,
/// or "".
std::string awaitRoot(Control &control,
                      std::chrono::milliseconds timeout = kTimeout) {
  try {
    awaitLastHeartbeat(control, 0, timeout);
  } catch (const WaitError &error) {
    return error.what();
  }
  return "";
}

TEST(Heartbeats, KeepTheOthersWaitingForLongerThanTheTimeout) {
  test::retryUntilSuccess(kTimeout, [](std::chrono::milliseconds timeout) {
    auto controls = makeInProcessControls(3);
    std::vector<std::string> told(3, "nothing");
    std::vector<std::thread> threads;
    for (uint32_t rank : {1, 2})
      threads.emplace_back(
          [&, rank] { told[rank] = awaitRoot(*controls[rank], timeout); });
    HeartbeatSender heartbeat(*controls[0], timeout);
    std::string wrong;
    try {
      heartbeat.runWithHeartbeats([&] { compute(3 * timeout); }, expectNoHang);
      heartbeat.sendLast();
    } catch (const WaitError &error) {
      wrong = error.what(); // another rank has given up
    }
    for (std::thread &thread : threads)
      thread.join();
    return wrong + told[1] + told[2];
  });
}

TEST(Heartbeats, AreMissedWhereTheRootIsStopped) {
  auto controls = makeInProcessControls(2);
  std::string told;
  auto begin = std::chrono::steady_clock::now();
  std::thread other([&] { told = awaitRoot(*controls[1]); });
  // Send some heartbeats and then none, as if the process had been stopped by
  // SIGSTOP.
  HeartbeatSender heartbeat(*controls[0], kTimeout);
  while (std::chrono::steady_clock::now() - begin < kTimeout) {
    heartbeat.sendIfDue();
    std::this_thread::sleep_for(5ms);
  }
  other.join();
  EXPECT_EQ(told, "timed out after 0.4 s waiting for a heartbeat of rank 0, "
                  "which gathers, saves and evaluates");
}

TEST(Heartbeats, TheFirstHasALongerTimeoutThanTheRoot) {
  test::retryUntilSuccess(kTimeout, [](std::chrono::milliseconds timeout) {
    auto controls = makeInProcessControls(3);
    std::string told, ofRoot;
    std::thread other([&] { told = awaitRoot(*controls[1], timeout); });
    // Let the root wait for a message of rank 2, which sends nothing. Meanwhile
    // it must send heartbeats.
    std::byte value{};
    try {
      receiveLarge(*controls[0], 2, {&value, 1}, timeout);
    } catch (const WaitError &error) {
      ofRoot = error.what();
    }
    controls[0]->abort("rank 0 failed");
    other.join();
    EXPECT_NE(ofRoot.find("timed out"), std::string::npos) << ofRoot;
    return told.find("timed out") == std::string::npos ? "" : told;
  });
}

TEST(Heartbeats, DoNotWaitForRanksThatDoNotListenYet) {
  test::retryUntilSuccess(kTimeout, [](std::chrono::milliseconds timeout) {
    auto controls = makeInProcessControls(2);
    HeartbeatSender heartbeat(*controls[0], timeout);
    heartbeat.runWithHeartbeats([&] { compute(2 * timeout); }, expectNoHang);
    std::string told = "nothing", wrong;
    std::thread late([&] { told = awaitRoot(*controls[1], timeout); });
    try {
      heartbeat.sendLast();
    } catch (const WaitError &error) {
      wrong = error.what(); // the other rank was too late
    }
    late.join();
    return wrong + told;
  });
}

TEST(Heartbeats, TheLastOneMustBeHeard) {
  auto controls = makeInProcessControls(2);
  HeartbeatSender heartbeat(*controls[0], 50ms);
  bool done = false;
  heartbeat.runWithHeartbeats([&] { done = true; }, expectNoHang);
  EXPECT_TRUE(done);
  EXPECT_THROW(heartbeat.sendLast(), WaitError);
}

TEST(Heartbeats, PassOnExceptionsOfTheWork) {
  auto controls = makeInProcessControls(1);
  HeartbeatSender heartbeat(*controls[0], kTimeout);
  EXPECT_THROW(heartbeat.runWithHeartbeats(
                   [] { throw std::runtime_error("full"); }, expectNoHang),
               std::runtime_error);
}

TEST(Heartbeats, ReportHangingWorkOnce) {
  auto controls = makeInProcessControls(1);
  HeartbeatSender heartbeat(*controls[0], 100ms);
  std::vector<std::string> told;
  // The work sleeps, as if it wrote to a pipe that no process reads. It also
  // sleeps for a while after the report.
  std::promise<void> isTold;
  heartbeat.runWithHeartbeats(
      [&] {
        isTold.get_future().wait_for(test::kPatience);
        std::this_thread::sleep_for(400ms);
      },
      [&](const std::string &reason) {
        if (told.empty())
          isTold.set_value();
        told.push_back(reason);
      });
  EXPECT_EQ(told,
            std::vector<std::string>{
                "timed out after 0.1 s waiting for progress of its saving"});
}

TEST(Heartbeats, ASlowDeviceIsNoHang) {
  auto controls = makeInProcessControls(1);
  HeartbeatSender heartbeat(*controls[0], 100ms);
  heartbeat.runWithHeartbeats(
      [] {
        // Wait in vfork. For the kernel, this is an uninterruptible wait like a
        // wait for a disk.
        if (pid_t child = vfork(); child == 0) {
          usleep(400000);
          _exit(0);
        }
      },
      expectNoHang);
}
} // namespace
