//===- ZeroCopyTest.cpp - Messages that pass on their memory --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/ZeroCopy.h"

#include "test/runtime/interpreter/WriteByHand.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

using runtime::Blocks;

/// A worker whose instructions the test appends one by one.
struct Stream {
  explicit Stream(std::vector<Buffer> buffers) {
    worker.buffers = std::move(buffers);
  }

  uint32_t add(Opcode opcode, uint32_t target,
               const std::vector<uint32_t> &operands,
               const std::vector<uint32_t> &results) {
    return append(worker, opcode, target, operands, results);
  }
  uint32_t send(uint32_t buffer) {
    return add(Opcode::PostSend, 0, {buffer}, {});
  }
  uint32_t receive(uint32_t buffer) {
    return add(Opcode::PostRecv, 0, {}, {buffer});
  }
  void wait(uint32_t post) { add(Opcode::Wait, post, {}, {}); }
  void write(uint32_t buffer) { add(Opcode::Load, 0, {}, {buffer}); }
  void read(uint32_t buffer) { add(Opcode::Backward, 0, {buffer}, {}); }

  /// For each of `posts`, whether its message may pass on its block of memory
  /// instead of copying it.
  std::vector<bool> of(std::initializer_list<uint32_t> posts,
                       Updates updates = Updates::Flush) const {
    ProgramT program;
    program.updates = updates;
    std::vector<bool> all = runtime::findZeroCopyMessages(
        program, worker, runtime::blocksOf(program, worker));
    std::vector<bool> asked;
    for (uint32_t post : posts)
      asked.push_back(all[post]);
    return asked;
  }

  WorkerT worker;
};

using Verdicts = std::vector<bool>;
const Buffer kFirst(ValueKind::Activation, 0, 64);
const Buffer kSecond(ValueKind::Gradient, 64, 64);

TEST(ZeroCopy, ABlockThatIsOverwrittenNextCanBeMoved) {
  Stream stream({kFirst, kSecond});
  stream.write(0);
  uint32_t send = stream.send(0);
  stream.wait(send);
  uint32_t receive = stream.receive(0);
  stream.wait(receive);
  stream.read(0);
  EXPECT_EQ(stream.of({send, receive}), (Verdicts{true, true}));
}

TEST(ZeroCopy, TheNextStepFollowsTheLastInstruction) {
  Stream stream({kFirst});
  stream.write(0);
  uint32_t send = stream.send(0);
  stream.wait(send);
  EXPECT_EQ(stream.of({send}), Verdicts{true});
  // Without a flush, another section may follow the body. So the next use of
  // the block is not known.
  EXPECT_EQ(stream.of({send}, Updates::EachStep), Verdicts{false});
}

TEST(ZeroCopy, ABlockThatIsStillReadIsNotMoved) {
  Stream after({kFirst});
  after.write(0);
  uint32_t send = after.send(0);
  after.wait(send);
  after.read(0);
  EXPECT_EQ(after.of({send}), Verdicts{false});

  Stream before({kFirst});
  before.write(0);
  send = before.send(0);
  before.read(0);
  before.wait(send);
  EXPECT_EQ(before.of({send}), Verdicts{false});

  Stream next({kFirst});
  next.read(0);
  next.write(0);
  send = next.send(0);
  next.wait(send);
  EXPECT_EQ(next.of({send}), Verdicts{false});
}

TEST(ZeroCopy, OfTwoSendsOfAValueNoneMovesItsBlock) {
  Stream nested({kFirst});
  nested.write(0);
  uint32_t outer = nested.send(0), inner = nested.send(0);
  nested.wait(inner);
  nested.wait(outer);
  EXPECT_EQ(nested.of({outer, inner}), (Verdicts{false, false}));

  Stream crossed({kFirst});
  crossed.write(0);
  uint32_t first = crossed.send(0), second = crossed.send(0);
  crossed.wait(first);
  crossed.wait(second);
  EXPECT_EQ(crossed.of({first, second}), (Verdicts{false, false}));

  // Only the last of the two sends may pass on the block.
  Stream after({kFirst});
  after.write(0);
  first = after.send(0);
  after.wait(first);
  second = after.send(0);
  after.wait(second);
  EXPECT_EQ(after.of({first, second}), (Verdicts{false, true}));
}

TEST(ZeroCopy, ABlockIsOneMessage) {
  // Another buffer shares bytes with the block: it extends beyond the end of
  // the block, or covers a part of it.
  for (Buffer other : {Buffer(ValueKind::Activation, 32, 64),
                       Buffer(ValueKind::Tokens, 0, 8)}) {
    Stream stream({kFirst, other});
    stream.write(0);
    uint32_t send = stream.send(0);
    stream.wait(send);
    uint32_t receive = stream.receive(0);
    stream.wait(receive);
    EXPECT_EQ(stream.of({send, receive}), (Verdicts{false, false}));
  }
  // A buffer of another kind with the same place and size does no harm.
  Stream same({kFirst, Buffer(ValueKind::Gradient, 0, 64)});
  same.write(0);
  uint32_t send = same.send(0);
  same.wait(send);
  uint32_t receive = same.receive(1);
  same.wait(receive);
  EXPECT_EQ(same.of({send, receive}), (Verdicts{true, true}));
}

TEST(ZeroCopy, StatesAndRenamedValuesAreNotMoved) {
  Stream renamed({kFirst, kSecond});
  renamed.write(0);
  uint32_t send = renamed.send(0);
  renamed.wait(send);
  uint32_t receive = renamed.receive(1);
  renamed.wait(receive);
  EXPECT_EQ(renamed.of({send, receive}), (Verdicts{true, true}));
  renamed.add(Opcode::Rename, 0, {0, 1}, {1, 0});
  EXPECT_EQ(renamed.of({send, receive}), (Verdicts{false, false}));

  Stream state({kFirst, kSecond});
  state.worker.states.emplace_back(0, 0, 0, 1);
  state.write(0);
  send = state.send(0);
  state.wait(send);
  EXPECT_EQ(state.of({send}), Verdicts{false});
}

// In samples every buffer has only one value. So all messages may pass on their
// blocks.
TEST(ZeroCopy, AllMessagesOfSamplesMoveTheirBlocks) {
  ProgramT program =
      samplePipeline({.bidirectional = true, .splitBackward = true});
  for (const auto &worker : program.workers) {
    std::vector<bool> found = runtime::findZeroCopyMessages(
        program, *worker, runtime::blocksOf(program, *worker));
    for (size_t i = 0; i < found.size(); ++i) {
      Opcode opcode = worker->instructions[i].opcode();
      EXPECT_EQ(found[i],
                opcode == Opcode::PostSend || opcode == Opcode::PostRecv)
          << i;
    }
  }
}

} // namespace
} // namespace chimera::program
