//===- WatcherTest.cpp - The end of a failed rank -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Watcher.h"

#include "runtime/control/InProcess.h"
#include "runtime/watch/EndProcess.h"
#include "runtime/watch/Processes.h"

#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// Starts processes that stop themselves, and that end when they are continued.
class StoppedProcesses {
public:
  explicit StoppedProcesses(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
      }
      waitpid(pid, nullptr, WUNTRACED);
      pids.push_back(pid);
    }
  }
  ~StoppedProcesses() {
    for (pid_t pid : pids) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  auto countStopped() const { return std::ranges::count_if(pids, isStopped); }

  std::vector<pid_t> pids;
};

/// Starts a process as rank 0 of a host, and lets this rank fail. `stopped` are
/// the processes of all other ranks. If `hasReporter`, another process has
/// begun to report but has ended before the report was complete. Returns the
/// exit status of rank 0: 3 if a process is still stopped after the report,
/// otherwise 1.
int failBeside(const StoppedProcesses &stopped, bool hasReporter) {
  const auto ranks = static_cast<uint32_t>(stopped.pids.size()) + 1;
  const pid_t rank0 = fork();
  if (rank0 == 0) {
    setEndProcess([](int status) { _exit(status); });
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    const program::ProgramT program =
        program::samplePipeline({.workers = 1, .dataParallel = ranks});
    StatusPage page(ranks);
    auto controls = makeInProcessControls(ranks);
    std::vector<uint32_t> all;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      page.of(rank).enter(Status::Running);
      if (rank > 0)
        page.of(rank).pid = stopped.pids[rank - 1];
      all.push_back(rank);
    }
    if (hasReporter)
      page.claimReport(1);
    // When `reported` returns true, any thread may end the process, as the
    // watcher's thread does. This thread checks that the processes have been
    // continued before.
    std::thread([&] {
      while (!page.reported())
        std::this_thread::yield();
      _exit(isStopped(stopped.pids.back()) ? 3 : 1);
    }).detach();
    Watcher watcher(program, page, *controls[0], all, std::chrono::seconds(60),
                    [](const std::string &) {});
    watcher.fail("a test fails it");
  }
  int status = 0;
  waitpid(rank0, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A stopped process that no process continues stays for ever. The thread of the
// failed rank writes the report. It must continue the stopped processes before
// another thread ends its process. There are many stopped processes, so
// continuing them takes some time.
TEST(Watcher, ContinuesStoppedProcessesBeforeItEnds) {
  StoppedProcesses stopped(399);
  EXPECT_EQ(stopped.countStopped(), 399);
  EXPECT_EQ(failBeside(stopped, false), 1);
  EXPECT_EQ(stopped.countStopped(), 0);
}

TEST(Watcher, ContinuesStoppedProcessesIfTheReporterEndedEarly) {
  StoppedProcesses stopped(1);
  EXPECT_EQ(failBeside(stopped, true), 1);
  EXPECT_EQ(stopped.countStopped(), 0);
}

// The rank that finds the failure of another rank tells the ranks on other
// hosts which rank has failed, and why.
TEST(Watcher, NamesTheRankThatHasFailed) {
  const pid_t rank0 = fork();
  if (rank0 == 0) {
    setEndProcess([](int status) { _exit(status); });
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    const program::ProgramT program =
        program::samplePipeline({.workers = 1, .dataParallel = 3});
    StatusPage page(3);
    auto controls = makeInProcessControls(3);
    for (uint32_t rank : {0, 1})
      page.of(rank).enter(Status::Running);
    controls[2]->onAbort([](const std::string &reason) {
      _exit(reason == "rank 1 failed: the disk is full" ? 7 : 8);
    });
    Watcher watcher(program, page, *controls[0], {0, 1},
                    std::chrono::seconds(60), [](const std::string &) {});
    page.of(1).fail("the disk is full");
    pause(); // the watcher's thread ends the process
  }
  int status = 0;
  waitpid(rank0, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
} // namespace
