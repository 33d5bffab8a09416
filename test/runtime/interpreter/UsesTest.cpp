//===- UsesTest.cpp - How an instruction uses buffers ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Uses.h"

#include "test/runtime/interpreter/WriteByHand.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

using runtime::Use;
using Uses = std::vector<std::pair<uint32_t, Use>>;

class UsesOf : public testing::Test {
protected:
  uint32_t add(Opcode opcode, const std::vector<uint32_t> &operands,
               const std::vector<uint32_t> &results, uint32_t target = 0) {
    return append(worker, opcode, target, operands, results);
  }
  Uses of(uint32_t instruction) {
    Uses uses;
    runtime::forEachUse(worker, worker.instructions[instruction],
                        [&](uint32_t buffer, Use use) {
                          uses.push_back({buffer, use});
                        });
    return uses;
  }

  UsesOf() {
    worker.buffers.resize(10);
    worker.buffers[9].mutate_kind(ValueKind::Loss);
  }

  WorkerT worker;
};

TEST_F(UsesOf, WhatIsReadAndWrittenIsUpdated) {
  EXPECT_EQ(
      of(add(Opcode::Backward, {3, 1, 0}, {1, 2})),
      (Uses{
          {3, Use::Read}, {1, Use::Update}, {0, Use::Read}, {2, Use::Write}}));
  EXPECT_EQ(of(add(Opcode::ZeroGradient, {}, {4})), (Uses{{4, Use::Write}}));
}

// A backward may add to the loss (runtime/model/Stage.h).
TEST_F(UsesOf, TheLossThatABackwardTakesIsUpdated) {
  for (Opcode opcode : {Opcode::Backward, Opcode::InputGradient})
    EXPECT_EQ(of(add(opcode, {3, 9, 0}, {1})), (Uses{{3, Use::Read},
                                                     {9, Use::Update},
                                                     {0, Use::Read},
                                                     {1, Use::Write}}));
  EXPECT_EQ(of(add(Opcode::PostSend, {9}, {})), (Uses{{9, Use::Read}}));
}

TEST_F(UsesOf, AWaitEndsWhatItsPostBegan) {
  uint32_t send = add(Opcode::PostSend, {5}, {});
  uint32_t receive = add(Opcode::PostRecv, {}, {6});
  uint32_t sum = add(Opcode::AllReduceStart, {7, 8}, {8});
  EXPECT_EQ(of(send), (Uses{{5, Use::Read}}));
  EXPECT_EQ(of(receive), (Uses{{6, Use::Write}}));
  EXPECT_EQ(of(sum), (Uses{{7, Use::Read}, {8, Use::Update}}));
  EXPECT_EQ(of(add(Opcode::Wait, {}, {}, send)), (Uses{{5, Use::EndOfRead}}));
  EXPECT_EQ(of(add(Opcode::Wait, {}, {}, receive)),
            (Uses{{6, Use::EndOfWrite}}));
  EXPECT_EQ(of(add(Opcode::Wait, {}, {}, sum)),
            (Uses{{7, Use::EndOfRead}, {8, Use::EndOfWrite}}));
}

TEST_F(UsesOf, SplitsAndJoinsGiveTheSameBytesOtherNumbers) {
  EXPECT_EQ(of(add(Opcode::Split, {1}, {2, 3})),
            (Uses{{1, Use::Leave}, {2, Use::Enter}, {3, Use::Enter}}));
  EXPECT_EQ(of(add(Opcode::Join, {2, 3}, {1})),
            (Uses{{2, Use::Leave}, {3, Use::Leave}, {1, Use::Enter}}));
}

} // namespace
} // namespace chimera::program
