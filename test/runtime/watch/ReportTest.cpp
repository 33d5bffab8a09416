//===- ReportTest.cpp - Reports of failed runs ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Report.h"

#include "runtime/watch/EndProcess.h"

#include "test/runtime/program/SamplePrograms.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The index of the first wait on `worker` for a post or start with this opcode
/// and kind.
uint32_t findWait(const program::ProgramT &program, uint32_t worker,
                  program::Opcode opcode, program::ValueKind kind) {
  const auto &instructions = program.workers[worker]->instructions;
  for (uint32_t i = 0; i < instructions.size(); ++i)
    if (instructions[i].opcode() == program::Opcode::Wait) {
      const auto &target = instructions[instructions[i].target()];
      if (target.opcode() == opcode && target.kind() == kind)
        return i;
    }
  ADD_FAILURE() << "no such wait";
  return 0;
}

TEST(Report, AReceiveWaitsForThePeerInTheSameCopy) {
  program::ProgramT program =
      program::samplePipeline({.workers = 4, .dataParallel = 2});
  StatusPage page(8);
  page.of(6).enter(Status::Running);
  page.of(6).setPosition(0, findWait(program, 2, program::Opcode::PostRecv,
                                     program::ValueKind::Activation));
  EXPECT_EQ(awaitedBy(program, accountOf(page, {6}, {}, ""), 6),
            std::vector<uint32_t>{5});
  page.of(6).setPosition(0, 0);
  EXPECT_TRUE(awaitedBy(program, accountOf(page, {6}, {}, ""), 6).empty());
}

TEST(Report, AnAllReduceIsAwaitedFromThoseThatHaveNotStartedIt) {
  program::ProgramT program =
      program::samplePipeline({.workers = 2, .dataParallel = 3});
  StatusPage page(6);
  auto waitOf = [&](uint32_t worker) {
    return findWait(program, worker, program::Opcode::AllReduceStart,
                    program::ValueKind::WeightGradient);
  };
  for (uint32_t rank = 0; rank < 6; ++rank)
    page.of(rank).enter(Status::Running);
  page.of(1).setPosition(4, waitOf(1));
  page.of(3).setPosition(4, 0);         // has not reached the all-reduce
  page.of(5).setPosition(5, waitOf(1)); // one step further
  EXPECT_EQ(awaitedBy(program, accountOf(page, {0, 1, 2, 3, 4, 5}, {}, ""), 1),
            std::vector<uint32_t>{3});
  // A rank that writes a checkpoint before this step has not started it either.
  page.of(3).enter(Status::Saving);
  EXPECT_EQ(awaitedBy(program, accountOf(page, {0, 1, 2, 3, 4, 5}, {}, ""), 1),
            std::vector<uint32_t>{3});
  // If there is no account of a rank, for example of a rank on another host,
  // its position is not known. So the rank is not named.
  EXPECT_TRUE(
      awaitedBy(program, accountOf(page, {0, 1, 5}, {}, ""), 1).empty());
}

TEST(Report, SaysOfWhichRanksNothingIsKnown) {
  program::ProgramT program =
      program::samplePipeline({.workers = 2, .dataParallel = 3});
  StatusPage page(6);
  for (uint32_t rank : {1, 4})
    page.of(rank).enter(Status::Running);
  std::string text = report(
      program, accountOf(page, {1, 4}, {}, "rank 0 was silent for 3.5 s"));
  EXPECT_EQ(text.find("rank 0 was silent for 3.5 s\nthe ranks at that "
                      "moment:\n  rank 1 (worker 1 of copy 0): step 1, "),
            0u)
      << text;
  EXPECT_TRUE(
      text.ends_with("  nothing is known about the other ranks: 0, 2, 3, 5\n"))
      << text;
}

TEST(Report, NamesTheDeadAndEverySurvivor) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  StatusPage page(2);
  page.of(0).pid = 4711;
  page.of(0).enter(Status::Running);
  page.of(0).setPosition(6, 1);
  page.of(1).enter(Status::Running);
  const int64_t begin =
      page.of(1).setPosition(6, findWait(program, 1, program::Opcode::PostRecv,
                                         program::ValueKind::Activation));
  Account account = accountOf(page, {0, 1}, {0}, "");
  EXPECT_LE(account.ranks[1].since, steadyNanoseconds() - begin);
  account.ranks[1].since = 12'340'000'000;
  std::string text = report(program, account);
  EXPECT_EQ(text.find("rank 0 (worker 0), process 4711, died; its last "
                      "instruction was step 7, instruction 1: "),
            0u)
      << text;
  EXPECT_NE(text.find("rank 1 (worker 1): step 7, instruction "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("; waiting for rank 0 for 12.34 s"), std::string::npos)
      << text;
}

TEST(Report, NamesWhoIsStoppedBeforeThoseThatWaited) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  StatusPage page(2);
  page.of(0).enter(Status::Running);
  page.of(1).enter(Status::Running);
  Account account = accountOf(page, {0, 1}, {}, "ended by SIGTERM");
  account.ranks[0].isStopped = true;
  EXPECT_EQ(report(program, account).find("ended by SIGTERM\nthe ranks"), 0u);
  account = accountOf(page, {0, 1}, {}, "rank 0 was silent for 20 s");
  account.ranks[0].isStopped = true;
  EXPECT_EQ(report(program, account)
                .find("rank 0 (worker 0) is stopped\nrank 0 was silent for 20 "
                      "s\nthe ranks"),
            0u);
  page.of(1).fail("timed out");
  account = accountOf(page, {0, 1}, {}, "");
  account.ranks[0].isStopped = true;
  std::string text = report(program, account);
  EXPECT_EQ(text.find("rank 0 (worker 0) is stopped\n"
                      "rank 1 (worker 1) failed: timed out\nthe ranks"),
            0u)
      << text;
}

// If one rank finds a damaged file, a list of the other ranks tells nothing.
TEST(Report, ListsNoRanksIfAStartFailed) {
  program::ProgramT program = program::samplePipeline({.workers = 4});
  StatusPage page(4);
  for (uint32_t rank : {0, 1, 2}) // rank 3 has not started
    page.of(rank).enter(Status::Starting);
  page.of(1).fail("no such folder");
  const Account account = accountOf(page, {0, 1, 2, 3}, {}, "");
  const std::string failure = "rank 1 (worker 1) failed: no such folder\n";
  EXPECT_EQ(report(program, account), failure);
  const auto expectList = [&](const Account &of) {
    EXPECT_NE(report(program, of).find("\nthe ranks at that moment:"),
              std::string::npos)
        << report(program, of);
  };
  Account changed = account;
  changed.ranks[2].state = Status::Running;
  expectList(changed);
  changed = account;
  changed.ranks[0].isStopped = true;
  expectList(changed);
  changed = account;
  changed.ranks[0].isDead = true;
  expectList(changed);
  expectList(accountOf(page, {0, 1, 2}, {}, "")); // rank 3 is on another host
  StatusPage late(4);
  late.of(0).enter(Status::Starting);
  late.of(0).fail(timeoutMessage(std::chrono::seconds(1), "rank 3 to start"));
  expectList(accountOf(late, {0, 1, 2, 3}, {}, ""));
}

TEST(Report, ReportsEntriesThatDoNotFitTheProgram) {
  program::ProgramT program = program::samplePipeline({.workers = 2});
  uint32_t wait = findWait(program, 1, program::Opcode::PostRecv,
                           program::ValueKind::Activation);
  program.workers[1]->instructions[wait].mutate_target(1u << 30);
  StatusPage page(2);
  for (uint32_t rank : {0, 1})
    page.of(rank).enter(Status::Running);
  page.of(0).fail("it is tired");
  page.of(1).setPosition(6, wait);
  std::string text = report(program, accountOf(page, {0, 1}, {}, ""));
  EXPECT_NE(text.find("rank 0 (worker 0) failed: it is tired"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 1 (worker 1): unknown ("), std::string::npos)
      << text;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Limits the memory of this process to 16 MiB more than it uses now.
void leaveNoMemory() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max =
      pages * static_cast<rlim_t>(getpagesize()) + (16 << 20);
  setrlimit(RLIMIT_AS, &limit);
}

TEST(ReportDeathTest, NamesWhoFailedWithoutMemory) {
  EXPECT_EXIT(
      {
        program::ProgramT program = program::samplePipeline({.workers = 2});
        StatusPage page(2);
        page.of(1).fail("it is tired");
        // With so many ranks, the report needs 50 MB.
        std::vector<uint32_t> ranks(1 << 20, 0);
        ranks.push_back(1);
        leaveNoMemory();
        writeReport(program, page, ranks, {}, "");
        _exit(3);
      },
      testing::ExitedWithCode(3),
      "watch_tests: rank 1 failed: it is tired\n"
      "out of memory: no report on all ranks");
}
#endif

TEST(ReportDeathTest, AnUncaughtExceptionEndsTheProcess) {
  setEndProcess([](int status) { _exit(status); });
  EXPECT_EXIT(
      runOrEnd("watching", [] { throw std::out_of_range("no such entry"); }),
      testing::ExitedWithCode(1),
      "watch_tests: failed while watching: no such entry");
  EXPECT_EXIT(runOrEnd("watching", [] { throw 7; }), testing::ExitedWithCode(1),
              "watch_tests: failed while watching: an unknown error");
}

TEST(Status, KeepsTheFirstFailureAndFitsLongOnes) {
  StatusPage page(1);
  page.of(0).fail(std::string(5000, 'x'));
  page.of(0).fail("second");
  EXPECT_EQ(std::string(page.of(0).reason.data()), std::string(999, 'x'));
}

TEST(Status, CutsNoCharacter) {
  StatusPage page(1);
  page.of(0).fail(std::string(998, 'x') + "…");
  EXPECT_EQ(std::string(page.of(0).reason.data()), std::string(998, 'x'));
}

TEST(Status, KeepsOneReasonIfThreadsFailAtOnce) {
  for (int round = 0; round < 200; ++round) {
    StatusPage page(1);
    std::vector<std::thread> threads;
    for (char letter : {'a', 'b', 'c'})
      threads.emplace_back(
          [&, letter] { page.of(0).fail(std::string(900, letter)); });
    for (std::thread &thread : threads)
      thread.join();
    std::string reason = page.of(0).reason.data();
    EXPECT_EQ(reason, std::string(900, reason[0]));
    EXPECT_EQ(page.of(0).failedIn.load(), Status::Absent);
  }
}
} // namespace
