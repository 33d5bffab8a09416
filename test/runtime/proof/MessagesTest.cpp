//===- MessagesTest.cpp - Refused waits and messages ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

const Refusal kMessageCases[] = {
    // Faults in waits.
    {"PostWithoutWait", Rule::Waits, "no wait after it in its section",
     [](ProgramT &p) {
       find(p, 0, Opcode::Wait) =
           withOwnOperands(worker(p, 0), worker(p, 0).instructions[0]);
     }},
    {"TwoWaitsForOne", Rule::Waits, "already has a wait, instruction",
     [](ProgramT &p) {
       uint32_t wait = indexOf(p, 0, Opcode::Wait);
       insert(p, 0, wait + 1, worker(p, 0).instructions[wait]);
     }},
    {"WaitForAComputation", Rule::Waits,
     "expected a post or start, got worker "
     "0 instruction 0 (zero_gradient",
     [](ProgramT &p) { find(p, 0, Opcode::Wait).mutate_target(0); }},
    {"WaitForWhatComesLater", Rule::Waits,
     "expected a post or start before it in its section",
     [](ProgramT &p) {
       find(p, 0, Opcode::Wait).mutate_target(indexOf(p, 0, Opcode::Wait));
     }},

    // Sends and receives, or starts of all-reduces, that do not match.
    {"LabelsOfDifferentKind", Rule::Matching,
     "channel from worker 0 to worker 1: expected send 0 and receive 0 to "
     "agree",
     [](ProgramT &p) {
       Instruction &send = find(p, 0, Opcode::PostSend);
       send.mutate_kind(ValueKind::Tokens);
       operand(p, 0, send, 0) = indexOfBuffer(p, 0, ValueKind::Tokens);
     }},
    {"LabelsOfDifferentStage", Rule::Matching, "expected send 0 and receive 0",
     [](ProgramT &p) { find(p, 0, Opcode::PostSend).mutate_stage(3); }},
    {"LabelsOfDifferentMicroBatch", Rule::Matching,
     "expected send 0 and receive 0",
     [](ProgramT &p) { find(p, 0, Opcode::PostSend).mutate_micro_batch(1); }},
    {"LabelsOfDifferentPipeline", Rule::Matching,
     "expected send 0 and receive 0",
     [](ProgramT &p) {
       find(p, 0, Opcode::PostSend).mutate_pipeline(1);
       find(p, 0, Opcode::PostSend).mutate_micro_batch(2);
     }},
    {"MessageOfDifferentBytes", Rule::Matching, "with 144 bytes and worker",
     [](ProgramT &p) {
       sendGradientInstead(p);
       // Send the gradient of stage 2 instead, of which worker 1 also has a
       // replica.
       operand(p, 1, find(p, 1, Opcode::PostSend), 0) =
           operand(p, 1, worker(p, 1).instructions[1], 0);
     }},
    {"SendToTheWrongWorker", Rule::Matching, "got no send and worker 1",
     [](ProgramT &p) {
       for (Instruction &each : worker(p, 0).instructions)
         if (each.opcode() == Opcode::PostSend && each.target() == 1)
           each.mutate_target(2);
     }},
    {"SendsInAnotherOrder", Rule::Matching, "expected send 0 and receive 0",
     [](ProgramT &p) {
       Instruction &first = find(p, 1, Opcode::PostSend, 0);
       for (uint32_t k = 1;; ++k) {
         Instruction &other = find(p, 1, Opcode::PostSend, k);
         if (other.target() != first.target())
           continue;
         std::swap(first, other);
         return;
       }
     }},
    {"StartMissingAtAMember", Rule::Matching,
     "communicator 0: expected 1 starts at worker 3 as at worker 0, got 0",
     [](ProgramT &p) {
       // Replace the start and its wait by zero_gradients, which do no harm.
       Instruction zero = worker(p, 3).instructions[0];
       uint32_t start = indexOf(p, 3, Opcode::AllReduceStart);
       for (Instruction &each : worker(p, 3).instructions)
         if (each.opcode() == Opcode::Wait && each.target() == start)
           each = zero;
       worker(p, 3).instructions[start] = zero;
     }},
    {"LossesNotSummed", Rule::Matching,
     "communicator 4: expected the losses to be summed in the body, got no "
     "start",
     [](ProgramT &p) {
       for (uint32_t w : {0u, 3u}) {
         Instruction zero = worker(p, w).instructions[0];
         uint32_t start = 0;
         while (worker(p, w).instructions[start].opcode() !=
                    Opcode::AllReduceStart ||
                worker(p, w).instructions[start].target() != 4)
           ++start;
         for (Instruction &each : worker(p, w).instructions)
           if (each.opcode() == Opcode::Wait && each.target() == start)
             each = zero;
         worker(p, w).instructions[start] = zero;
       }
     }},
    {"LossNotInTheSum", Rule::Matching,
     "communicator 4: expected the losses of all 4 micro-batches, got 3",
     [](ProgramT &p) {
       auto &list = p.communicators[4]->contributions;
       uint32_t w = list.back().worker();
       list.pop_back();
       for (Instruction &each : worker(p, w).instructions)
         if (each.opcode() == Opcode::AllReduceStart && each.target() == 4) {
           // Remove the last operand. The result follows the operands, so move
           // it forward by one.
           uint32_t k = each.operands() - 1u;
           operand(p, w, each, k) = operand(p, w, each, k + 1);
           each.mutate_operands(static_cast<uint16_t>(k));
         }
     }},
};

class VerifyMessages : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyMessages, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyMessages,
                         testing::ValuesIn(kMessageCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
