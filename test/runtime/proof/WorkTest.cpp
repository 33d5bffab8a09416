//===- WorkTest.cpp - The cost of a proof ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time and memory of a proof must be linear in the size of the program, so
// that a small file cannot keep a reader busy. Each of these programs has two
// large counts. If the cost were their product, the proof would take minutes or
// tens of gigabytes.
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Verify.h"
#include "test/runtime/program/LargePrograms.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chimera::program {
namespace {

/// Forks this process and calls `function` in the child. Returns the child's
/// peak memory in megabytes, or -1 if the child does not end normally.
int64_t megabytesOf(const std::function<void()> &function) {
  pid_t child = fork();
  if (child == 0) {
    function();
    _exit(0);
  }
  int status = 0;
  rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
    return -1;
  return used.ru_maxrss / 1024;
}

TEST(VerifyWork, OfPipelinesTimesMicroBatches) {
  // A table with an entry of 16 bytes for each pipeline and micro-batch would
  // need 1600 MB.
  const ProgramT program = manyPipelines(10000, 10000);
  int64_t megabytes = megabytesOf([&] {
    if (!verifyProgram(program).empty())
      std::abort();
  });
  ASSERT_GE(megabytes, 0);
  EXPECT_LT(megabytes - megabytesOf([] {}), 400);
}

TEST(VerifyWork, OfMembersTimesContributions) {
  EXPECT_TRUE(verifyProgram(manyMembers(30000)).empty());
}

TEST(VerifyWork, OfPostsTimesCommunicators) {
  for (const Violation &violation : verifyProgram(largeGroup(100000)))
    EXPECT_EQ(violation.rule, Violation::Rule::Memory) << violation.message;
}

TEST(VerifyWork, OfInstructionsTimesSharedOperands) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  WorkerT &worker = *program.workers[0];
  // 60000 instructions share 65534 operands. If the proof visited the operands
  // of each instruction, it would visit 4 * 10^9 operands. The file has only
  // 5 MB.
  worker.operands.resize(UINT16_MAX);
  Instruction join = worker.instructions.front();
  join.mutate_opcode(Opcode::Join);
  join.mutate_first_operand(0);
  join.mutate_operands(UINT16_MAX - 1);
  join.mutate_results(1);
  worker.instructions.insert(worker.instructions.end(), 60000, join);
  worker.body_end = static_cast<uint32_t>(worker.instructions.size());
  std::vector<Violation> violations = verifyProgram(program);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_NE(violations[0].message.find("65535 operands and results"),
            std::string::npos)
      << violations[0].message;
}

std::string deadlockOf(const ProgramT &program) {
  std::vector<Violation> violations = verifyProgram(program);
  EXPECT_EQ(violations.size(), 1u);
  return violations.empty() ? "" : violations[0].message;
}

TEST(VerifyWork, OfALongCycle) {
  std::string message = deadlockOf(longCycle(50000));
  EXPECT_NE(message.find("got a cycle of 50000:"), std::string::npos);
  // The message lists only the first 20 workers of the cycle.
  EXPECT_NE(message.find("and 49980 more"), std::string::npos) << message;
  EXPECT_LT(message.size(), 20000u);
}

TEST(VerifyWork, OfCyclesThatShareWorkers) {
  // The shortest cycles contain either all even or all odd workers. For many
  // workers, the verifier may report a longer cycle.
  EXPECT_NE(deadlockOf(crossedCycles(10)).find("got a cycle of 5:"),
            std::string::npos);
  std::string message = deadlockOf(crossedCycles(20000));
  EXPECT_NE(message.find("got a cycle of 1"), std::string::npos) << message;
}

TEST(VerifyWork, OfManyInstructionsWithManyPredecessors) {
  std::string message = deadlockOf(manyWaiters(20000));
  EXPECT_NE(message.find("got a cycle of 2:"), std::string::npos) << message;
}

} // namespace
} // namespace chimera::program
