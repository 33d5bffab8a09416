//===- EarlyReportTest.cpp - Reports of ranks that stop early -------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/EarlyReport.h"

#include "runtime/watch/Processes.h"

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace chimera::runtime;
using namespace std::chrono_literals;

namespace {
/// Starts a process that runs `work` and ends.
template <typename Work> pid_t start(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  return child;
}

/// Starts a process that stops itself, and that ends when it is continued.
/// Returns its process id after it has stopped.
pid_t stopOne() {
  const pid_t child = start([] { raise(SIGSTOP); });
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  return child;
}

std::string nameOfTest() { return "test of " + std::to_string(getpid()); }

TEST(EarlyReport, NamesTheStoppedAndLetsThemGoOn) {
  const pid_t stopped = stopOne();
  std::string told;
  int others = 0;
  EXPECT_TRUE(reportStoppedRanks(
      nameOfTest(), {{2, stopped}}, "timed out", [&](const std::string &text) {
        told = text;
        // If another rank of the host fails now, it
        // must leave the report to this rank.
        EXPECT_TRUE(reportStoppedRanks(nameOfTest(), {{2, stopped}},
                                       "timed out",
                                       [&](const std::string &) { ++others; }));
      }));
  EXPECT_EQ(told, "rank 2 is stopped (process " + std::to_string(stopped) +
                      "): timed out");
  EXPECT_EQ(others, 0);
  int status = 0;
  EXPECT_EQ(waitpid(stopped, &status, 0), stopped);
  EXPECT_TRUE(WIFEXITED(status)) << "it did not go on";
}

// A rank may look for stopped ranks after another rank has let them continue,
// also a second later. It must see that there is a report. A report can be seen
// for 5 s. On a busy machine the rank may look later than that, so the test
// tries several times.
TEST(EarlyReport, IsSeenByRanksThatFailLater) {
  const std::string name = nameOfTest();
  int status = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t stopped = stopOne();
    const pid_t late = start([&] {
      while (isStopped(stopped))
        usleep(1000);
      sleep(1);
      _exit(reportStoppedRanks(name, {{2, stopped}}, "timed out",
                               [](const std::string &) { _exit(2); })
                ? 0
                : 3);
    });
    EXPECT_TRUE(reportStoppedRanks(name, {{1, late}, {2, stopped}}, "timed out",
                                   [](const std::string &) {}));
    waitpid(stopped, &status, 0);
    waitpid(late, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) != 3 ||
        std::chrono::steady_clock::now() - begin < 5s)
      break;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: a second report; 3: no report";
}

TEST(EarlyReport, LeavesItToTheRankWhereNobodyIsStopped) {
  EXPECT_FALSE(reportStoppedRanks(nameOfTest(), {{1, getpid()}}, "timed out",
                                  [](const std::string &) { ADD_FAILURE(); }));
}
} // namespace
