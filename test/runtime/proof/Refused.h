//===- Refused.h - Programs that must be refused ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers for tests of the verifier's rules, with one test for each constraint.
// A case changes one thing in a valid program, and names the rule that must
// refuse it and a part of the message.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TEST_RUNTIME_PROOF_REFUSED_H
#define CHIMERA_TEST_RUNTIME_PROOF_REFUSED_H

#include "runtime/proof/Verify.h"
#include "test/runtime/program/Changes.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace chimera::program {

using Rule = Violation::Rule;

/// Expects that `program` breaks `rule` and no other, with a message that
/// contains `message`.
inline void expectRefused(const ProgramT &program, Rule rule,
                          const std::string &message) {
  std::vector<Violation> violations = verifyProgram(program);
  EXPECT_FALSE(violations.empty()) << "accepted";
  std::string all;
  bool isFound = false;
  for (const Violation &violation : violations) {
    EXPECT_EQ(violation.rule, rule) << violation.message;
    isFound |= violation.message.find(message) != std::string::npos;
    all += violation.message + "\n";
  }
  EXPECT_TRUE(isFound) << "expected " << message << "\ngot " << all;
}

struct Refusal {
  const char *name;
  Rule rule;
  const char *message;
  void (*change)(ProgramT &program);
};

inline void PrintTo(const Refusal &each, std::ostream *stream) {
  *stream << each.name;
}

/// Applies the change of `each` to `program`. Expects that the program is valid
/// before and refused after.
inline void expectRefused(ProgramT program, const Refusal &each) {
  EXPECT_TRUE(verifyProgram(program).empty());
  each.change(program);
  expectRefused(program, each.rule, each.message);
}

/// The program that most cases change: two pipelines of four stages. Worker 1
/// has stage 1 of pipeline 0 and stage 2 of pipeline 1. Micro-batches 0 and 1
/// belong to pipeline 0.
inline ProgramT sampleBothWays() {
  return samplePipeline(
      {.workers = 4, .microBatches = 4, .bidirectional = true});
}

/// Changes the first message from worker 1 to worker 2 into one with the weight
/// gradient of stage 1. The zero_gradients of worker 1 (its first instruction)
/// and of worker 2 (its second) write that gradient.
inline void sendGradientInstead(ProgramT &program) {
  Instruction &send = find(program, 1, Opcode::PostSend);
  send.mutate_kind(ValueKind::WeightGradient);
  operand(program, 1, send, 0) =
      operand(program, 1, worker(program, 1).instructions[0], 0);
  Instruction &receive = find(program, 2, Opcode::PostRecv);
  receive.mutate_kind(ValueKind::WeightGradient);
  operand(program, 2, receive, 0) =
      operand(program, 2, worker(program, 2).instructions[1], 0);
}

/// Names a test after its case.
template <typename Case>
std::string nameOfCase(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

} // namespace chimera::program

#endif // CHIMERA_TEST_RUNTIME_PROOF_REFUSED_H
