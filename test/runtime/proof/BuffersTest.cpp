//===- BuffersTest.cpp - Refused uses of buffers --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

/// Makes the second backward of worker 0 use the stash of the first backward.
void takeStashOfTheFirst(ProgramT &program) {
  operand(program, 0, find(program, 0, Opcode::Backward, 1), 0) =
      operand(program, 0, find(program, 0, Opcode::Backward, 0), 0);
}

const Refusal kBufferCases[] = {
    {"UnusedStash", Rule::Buffers,
     "expected the stash in buffer 7 to be used, as it was written by worker 0 "
     "instruction 10 (input_gradient",
     [](ProgramT &p) {
       // Move the input gradient to the end. Its weight stash is smaller than
       // the stash that it frees.
       p = samplePipeline({.workers = 1,
                           .microBatches = 1,
                           .splitBackward = true,
                           .weightStashBytes = 64});
       std::vector<Instruction> &stream = worker(p, 0).instructions;
       uint32_t input = indexOf(p, 0, Opcode::InputGradient);
       std::rotate(stream.begin() + input, stream.begin() + input + 1,
                   stream.end());
       for (Instruction &wait : stream)
         if (wait.opcode() == Opcode::Wait && wait.target() > input)
           wait.mutate_target(wait.target() - 1);
     }},
    {"ReadOfNothing", Rule::Buffers, "reads a buffer that nothing has written",
     [](ProgramT &p) {
       Instruction &load = find(p, 0, Opcode::Load);
       load = worker(p, 0).instructions[0]; // another zero_gradient
     }},
    {"ReadOfWhatIsReceived", Rule::Buffers,
     "reads a buffer that is still being received or summed",
     [](ProgramT &p) {
       // Move the wait before the first forward of worker 1 to after this
       // forward.
       uint32_t wait = indexOf(p, 1, Opcode::Wait);
       uint32_t forward = indexOf(p, 1, Opcode::Forward);
       std::vector<Instruction> &stream = worker(p, 1).instructions;
       ASSERT_EQ(wait + 1, forward);
       std::swap(stream[wait], stream[forward]);
     }},
    {"WriteOfWhatIsReceived", Rule::Buffers,
     "writes a buffer that is still being received or summed",
     [](ProgramT &p) {
       sendGradientInstead(p);
       insert(p, 2, indexOf(p, 2, Opcode::PostRecv) + 1,
              worker(p, 2).instructions[1]);
     }},
    {"WriteOfWhatIsSent", Rule::Buffers,
     "writes a buffer that is still being sent or summed",
     [](ProgramT &p) {
       sendGradientInstead(p);
       insert(p, 1, indexOf(p, 1, Opcode::PostSend) + 1,
              worker(p, 1).instructions[0]);
     }},
    {"WriteOfWhatIsSummed", Rule::Buffers,
     "writes a buffer that is still being sent or summed",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::AllReduceStart) + 1,
              worker(p, 0).instructions[0]);
     }},
    {"ReadOfTheSumBeforeItsWait", Rule::Buffers,
     "reads a buffer that is still being received or summed",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::AllReduceStart, 2) + 1,
              find(p, 0, Opcode::OptimizerStep));
     }},
    {"StashUsedTwice", Rule::Buffers, "uses a stash a second time",
     [](ProgramT &p) { takeStashOfTheFirst(p); }},
    {"StashNeverUsed", Rule::Buffers, "to be used, as it was written by",
     [](ProgramT &p) { takeStashOfTheFirst(p); }},
    {"StashOverwritten", Rule::Buffers, "overwrites a stash that was not used",
     [](ProgramT &p) {
       Instruction &first = find(p, 0, Opcode::Forward, 0);
       Instruction &second = find(p, 0, Opcode::Forward, 1);
       operand(p, 0, second, second.operands() + 1) =
           operand(p, 0, first, first.operands() + 1);
     }},
    {"OverlapInSpaceAndTime", Rule::Buffers, "which is in use until",
     [](ProgramT &p) {
       Instruction &forward = find(p, 0, Opcode::Forward);
       bufferOf(p, 0, forward, 2)
           .mutate_offset(bufferOf(p, 0, forward, 0).offset());
     }},
    {"OverlapWithAState", Rule::Buffers,
     "expected a state's bytes to be its own",
     [](ProgramT &p) {
       Instruction &forward = find(p, 0, Opcode::Forward);
       bufferOf(p, 0, forward, 2)
           .mutate_offset(bufferOf(p, 0, forward, 1).offset() + 64);
     }},
    {"OverlapOfStates", Rule::Buffers, "expected a state's bytes to be its own",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       w.buffers[w.states[1].weights()].mutate_offset(
           w.buffers[w.states[0].weights()].offset() + 64);
     }},

    // Faults in the stated memory.
    {"PeakHigherThanStated", Rule::Memory, "bytes as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_bytes -= 8; }},
    {"PeakLowerThanStated", Rule::Memory, "bytes as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_bytes += 8; }},
    {"PeakElsewhere", Rule::Memory, "bytes here as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_instruction = 0; }},
    {"CapExceededByTheArena", Rule::Cap, "bytes, the worker's cap, got an",
     [](ProgramT &p) {
       worker(p, 2).memory_cap = worker(p, 2).arena_bytes - 1;
     }},
    // The bytes that are live at the same time would fit into the cap.
    {"CapExceededWithStashes", Rule::Cap, " and stashes of ",
     [](ProgramT &p) { worker(p, 2).memory_cap = worker(p, 2).arena_bytes; }},
    {"CapExceededByAsMuchAsThereCanBe", Rule::Cap,
     "cap, got an arena of 281474976710655 and",
     [](ProgramT &p) {
       worker(p, 2).memory_cap = 1;
       worker(p, 2).arena_bytes = kMaxBytes;
     }},
};

class VerifyBuffers : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyBuffers, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyBuffers,
                         testing::ValuesIn(kBufferCases), nameOfCase<Refusal>);

/// The verifier compares the cap with the bytes that the message states: the
/// whole arena, and the maximum of the stashes that are live at the same time.
TEST(VerifyBuffers, AcceptsACapOfArenaAndStashes) {
  for (ProgramT program :
       {sampleBothWays(), sampleAsynchronous({}, Updates::EachMicroBatch)}) {
    WorkerT &worker = *program.workers.front();
    worker.memory_cap = worker.arena_bytes;
    std::vector<Violation> violations = verifyProgram(program);
    ASSERT_EQ(violations.size(), 1u);
    const std::string &message = violations.front().message;
    uint64_t stashes = std::stoull(message.substr(message.rfind(' ') + 1));
    EXPECT_GT(stashes, 0u);
    EXPECT_LT(stashes, worker.peak_bytes);
    worker.memory_cap = worker.arena_bytes + stashes - 1;
    EXPECT_EQ(verifyProgram(program).size(), 1u);
    ++worker.memory_cap;
    EXPECT_TRUE(verifyProgram(program).empty());
  }
}

} // namespace
} // namespace chimera::program
