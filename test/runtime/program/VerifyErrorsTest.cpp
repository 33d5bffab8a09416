//===- VerifyErrorsTest.cpp - One refused program for each constraint -----===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case changes one thing in a valid program and says which rule must catch
// it and a part of what the message must say.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Verify.h"
#include "test/runtime/program/Changes.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

namespace chimera::program {
namespace {

using Rule = Violation::Rule;

// Two pipelines of four stages; worker 1 has stage 1 of pipeline 0 and stage 2
// of pipeline 1; micro-batches 0 and 1 are pipeline 0's.
ProgramT sample() {
  return samplePipeline(
      {.workers = 4, .microBatches = 4, .bidirectional = true});
}

/// Turns the first message from worker 1 to worker 2 into one of the weight
/// gradient of stage 1, which the zero_gradient of worker 1 (its first
/// instruction) and that of worker 2 (its second) write.
void sendGradientInstead(ProgramT &program) {
  Instruction &send = find(program, 1, Opcode::PostSend);
  send.mutate_kind(ValueKind::WeightGradient);
  operand(program, 1, send, 0) =
      operand(program, 1, worker(program, 1).instructions[0], 0);
  Instruction &receive = find(program, 2, Opcode::PostRecv);
  receive.mutate_kind(ValueKind::WeightGradient);
  operand(program, 2, receive, 0) =
      operand(program, 2, worker(program, 2).instructions[1], 0);
}

/// The second backward of worker 0 takes the stash of the first.
void takeStashOfTheFirst(ProgramT &program) {
  operand(program, 0, find(program, 0, Opcode::Backward, 1), 0) =
      operand(program, 0, find(program, 0, Opcode::Backward, 0), 0);
}

struct Case {
  const char *name;
  Rule rule;
  const char *message;
  void (*change)(ProgramT &program);
};

void PrintTo(const Case &each, std::ostream *stream) { *stream << each.name; }

const Case kCases[] = {
    // Tables.
    {"NoOptimizer", Rule::Structure, "expected an optimizer, got none",
     [](ProgramT &p) { p.optimizer = nullptr; }},
    {"NullPipeline", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.pipelines[1] = nullptr; }},
    {"NullCommunicator", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.communicators[1] = nullptr; }},
    {"NullWorker", Rule::Structure, "got an empty entry",
     [](ProgramT &p) { p.workers[1] = nullptr; }},
    {"NoWorkers", Rule::Structure, "expected at least one worker",
     [](ProgramT &p) { p.workers.clear(); }},
    {"NoStages", Rule::Structure, "expected at least one stage",
     [](ProgramT &p) { p.stages.clear(); }},
    {"NoPipelines", Rule::Structure, "expected at least one pipeline",
     [](ProgramT &p) { p.pipelines.clear(); }},
    {"NoMicroBatches", Rule::Structure, "expected at least one micro-batch",
     [](ProgramT &p) { p.micro_batches = 0; }},
    {"NoCopies", Rule::Structure, "expected at least one data-parallel copy",
     [](ProgramT &p) { p.data_parallel = 0; }},
    {"TooManyStages", Rule::Structure, "expected at most 65536 stages",
     [](ProgramT &p) { p.stages.resize(65537); }},
    {"TooManyRanks", Rule::Structure, "ranks, got 17179869180",
     [](ProgramT &p) { p.data_parallel = UINT32_MAX; }},
    {"UnknownDataType", Rule::Structure, "unknown data type 7",
     [](ProgramT &p) { p.data_type = DataType(7); }},
    {"UnknownMessageModel", Rule::Structure, "unknown message model 7",
     [](ProgramT &p) { p.message_model = MessageModel(7); }},
    {"LocationOfNoFile", Rule::Structure,
     "location 2: expected a file below 1, got 5",
     [](ProgramT &p) { p.locations[2].mutate_file(5); }},
    {"MicroBatchInNoPipeline", Rule::Structure,
     "expected each of 5 micro-batches in one pipeline, got 4",
     [](ProgramT &p) { p.micro_batches = 5; }},
    {"MicroBatchInTwoPipelines", Rule::Structure,
     "pipeline 1: micro-batch 1 is in pipeline 0 too",
     [](ProgramT &p) { p.pipelines[1]->micro_batches = {1, 3}; }},
    {"MicroBatchOutOfRange", Rule::Structure,
     "expected micro-batches below 4, got 9",
     [](ProgramT &p) { p.pipelines[1]->micro_batches[1] = 9; }},
    {"MicroBatchesNotAscending", Rule::Structure,
     "expected ascending micro-batches, got 2 after 3",
     [](ProgramT &p) { p.pipelines[1]->micro_batches = {3, 2}; }},
    {"UnknownDirection", Rule::Structure, "unknown direction 3",
     [](ProgramT &p) { p.pipelines[0]->direction = Direction(3); }},
    {"PipelineWithTooFewWorkers", Rule::Structure,
     "expected a worker for each of 4 stages, got 3",
     [](ProgramT &p) { p.pipelines[0]->workers.pop_back(); }},
    {"PipelineOnNoWorker", Rule::Structure, "expected workers below 4, got 4",
     [](ProgramT &p) { p.pipelines[0]->workers[2] = 4; }},
    {"CommunicatorOfActivations", Rule::Structure,
     "expected weight gradients or losses, got activation",
     [](ProgramT &p) { p.communicators[0]->kind = ValueKind::Activation; }},
    {"CommunicatorOfNoStage", Rule::Structure,
     "communicator 1: expected a stage below 4, got 4",
     [](ProgramT &p) { p.communicators[1]->stage = 4; }},
    {"CommunicatorOfNobody", Rule::Structure, "expected contributions, got none",
     [](ProgramT &p) { p.communicators[1]->contributions.clear(); }},
    {"ContributionOfNoPipeline", Rule::Structure,
     "expected a pipeline below 2, got 6",
     [](ProgramT &p) { p.communicators[0]->contributions[1].mutate_key(6); }},
    {"ContributionOfNoMicroBatch", Rule::Structure,
     "expected a micro-batch below 4, got 6",
     [](ProgramT &p) { p.communicators[4]->contributions[1].mutate_key(6); }},
    {"ContributionsNotAscending", Rule::Structure,
     "expected ascending contributions, got pipeline 0 after 1",
     [](ProgramT &p) {
       std::ranges::reverse(p.communicators[0]->contributions);
     }},
    {"ContributionFromElsewhere", Rule::Structure,
     "expected the contribution of pipeline 1 from worker 3, which holds stage "
     "0, got 2",
     [](ProgramT &p) {
       p.communicators[0]->contributions[1].mutate_worker(2);
     }},
    {"LossFromElsewhere", Rule::Structure,
     "expected the contribution of micro-batch 2 from worker 0, which holds "
     "stage 3, got 3",
     [](ProgramT &p) {
       p.communicators[4]->contributions[2].mutate_worker(3);
     }},
    {"BufferOfUnknownKind", Rule::Structure, "buffer 3: unknown kind 44",
     [](ProgramT &p) {
       worker(p, 0).buffers[3].mutate_kind(ValueKind(44));
     }},
    {"BufferTooLarge", Rule::Structure, "expected less than 2^48 bytes",
     [](ProgramT &p) {
       worker(p, 0).buffers[3].mutate_bytes(uint64_t(1) << 50);
     }},
    {"BufferOutsideTheArena", Rule::Structure, "bytes inside the arena of",
     [](ProgramT &p) {
       worker(p, 0).buffers[3].mutate_offset(UINT64_MAX - 7);
     }},
    {"StateOfNoStage", Rule::Structure, "no such pipeline or stage",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_stage(4); }},
    {"StateOnTheWrongWorker", Rule::Structure, "this stage is on worker 1",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_stage(1); }},
    {"StateGivenTwice", Rule::Structure, "given twice",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       w.states.push_back(w.states[0]);
     }},
    {"StateMissing", Rule::Structure,
     "worker 0: expected a state of pipeline 1 stage 3, got none",
     [](ProgramT &p) { worker(p, 0).states.pop_back(); }},
    {"StateInNoBuffer", Rule::Structure, "expected a buffer below",
     [](ProgramT &p) { worker(p, 0).states[0].mutate_weights(UINT32_MAX); }},
    {"StateInABufferOfOtherKind", Rule::Structure,
     "expected 128 bytes of weights, got 256 of optimizer state",
     [](ProgramT &p) {
       State &state = worker(p, 0).states[0];
       state.mutate_weights(state.optimizer_state());
     }},
    {"StateOfOtherSize", Rule::Structure,
     "expected 128 bytes of weights, got 120 of weights",
     [](ProgramT &p) {
       shrink(worker(p, 0).buffers[worker(p, 0).states[0].weights()]);
     }},
    {"StatesInOneBuffer", Rule::Structure, "is another state's too",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       w.states[1].mutate_weights(w.states[0].weights());
     }},
    {"BodyOutsideTheStream", Rule::Structure, "expected a body inside its",
     [](ProgramT &p) { ++worker(p, 0).body_end; }},
    {"BodyEndsBeforeItBegins", Rule::Structure, "expected a body inside its",
     [](ProgramT &p) {
       worker(p, 0).body_begin = 5;
       worker(p, 0).body_end = 4;
     }},
    {"PrologueDespiteAFlush", Rule::Structure,
     "worker 0: expected all instructions in the body of a program whose steps "
     "end with a flush, got 5 before it and 0 behind it",
     [](ProgramT &p) { worker(p, 0).body_begin = 5; }},
    {"EpilogueDespiteAFlush", Rule::Structure, "got 0 before it and 1 behind it",
     [](ProgramT &p) { --worker(p, 0).body_end; }},
    {"UnknownUpdates", Rule::Structure, "unknown updates 3",
     [](ProgramT &p) { p.updates = Updates(3); }},
    {"PeakAtNoInstruction", Rule::Structure, "expected its peak at one of its",
     [](ProgramT &p) { worker(p, 0).peak_instruction = 100000; }},

    // Instructions.
    {"UnknownOpcode", Rule::Structure, "unknown opcode or kind",
     [](ProgramT &p) {
       worker(p, 0).instructions[0].mutate_opcode(
             Opcode(size_t(Opcode::MAX) + 1));
     }},
    {"UnknownKind", Rule::Structure, "unknown opcode or kind",
     [](ProgramT &p) {
       worker(p, 0).instructions[0].mutate_kind(ValueKind(9));
     }},
    {"NoSuchLocation", Rule::Structure, "expected a location below 4, got 4",
     [](ProgramT &p) { worker(p, 0).instructions[0].mutate_location(4); }},
    {"GroupOfNothing", Rule::Structure, "expected that many posts",
     [](ProgramT &p) {
       insert(p, 0, 2, Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                   0, 0, 0));
     }},
    {"GroupPastTheSection", Rule::Structure, "expected that many posts",
     [](ProgramT &p) {
       insert(p, 0, 2, Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 9999, 0,
                                   0, 0, 0, 0));
     }},
    {"GroupOfComputations", Rule::Structure,
     "expected a post, as a group before it announces",
     [](ProgramT &p) {
       insert(p, 0, 2, Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 1, 0, 0,
                                   0, 0, 0));
     }},
    {"WaitWithOperands", Rule::Structure, "expected no operands and results",
     [](ProgramT &p) { find(p, 0, Opcode::Wait).mutate_operands(1); }},
    {"OperandsPastThePool", Rule::Structure, "expected operands inside the pool",
     [](ProgramT &p) {
       find(p, 0, Opcode::Forward).mutate_first_operand(UINT32_MAX);
     }},
    {"OperandOfNoBuffer", Rule::Structure, "expected buffers below",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Forward), 1) = UINT32_MAX;
     }},
    {"NoSuchPipeline", Rule::Structure, "expected a pipeline below 2, got 2",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_pipeline(2); }},
    {"NoSuchStage", Rule::Structure, "expected a stage below 4, got 4",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_stage(4); }},
    {"ActionOnTheWrongWorker", Rule::Structure, "this stage is on worker 2",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_stage(2); }},
    {"NoMicroBatchInLabel", Rule::Structure,
     "expected micro-batches inside [0, 4), got [0, 0)",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_micro_batches(0); }},
    {"MicroBatchPastTheLast", Rule::Structure, "got [0, 4294967295)",
     [](ProgramT &p) {
       find(p, 0, Opcode::Forward).mutate_micro_batches(UINT32_MAX);
     }},
    {"MicroBatchOfOtherPipeline", Rule::Structure,
     "expected micro-batches of pipeline 0, got one of pipeline 1",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_micro_batch(2); }},
    {"NoParts", Rule::Structure, "got part 0 of 0",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_parts(0); }},
    {"PartPastTheLast", Rule::Structure, "got part 2 of 2",
     [](ProgramT &p) {
       find(p, 0, Opcode::Forward).mutate_parts(2);
       find(p, 0, Opcode::Forward).mutate_part(2);
     }},
    {"LoadOfActivations", Rule::Structure,
     "expected tokens or labels, got activation",
     [](ProgramT &p) {
       find(p, 0, Opcode::Load).mutate_kind(ValueKind::Activation);
     }},
    {"LoadOfNothing", Rule::Structure,
     "expected 0 operands and 1 results, got 0 and 0",
     [](ProgramT &p) { find(p, 0, Opcode::Load).mutate_results(0); }},
    {"LoadIntoOtherKind", Rule::Structure,
     "expected a buffer of labels, got one of tokens",
     [](ProgramT &p) {
       find(p, 0, Opcode::Load).mutate_kind(ValueKind::Labels);
     }},
    {"PeerOutOfRange", Rule::Structure, "expected a peer below 4, got 4",
     [](ProgramT &p) { find(p, 0, Opcode::PostSend).mutate_target(4); }},
    {"SendToItself", Rule::Structure,
     "expected another worker as peer, got itself",
     [](ProgramT &p) { find(p, 0, Opcode::PostSend).mutate_target(0); }},
    {"SendOfAStash", Rule::Structure, "a stash cannot be sent",
     [](ProgramT &p) {
       find(p, 0, Opcode::PostSend).mutate_kind(ValueKind::Stash);
     }},
    {"SendWithAResult", Rule::Structure,
     "expected 1 operands and 0 results, got 0 and 1",
     [](ProgramT &p) {
       Instruction &send = find(p, 0, Opcode::PostSend);
       send.mutate_operands(0);
       send.mutate_results(1);
     }},
    {"SendFromOtherKind", Rule::Structure,
     "expected a buffer of gradient, got one of activation",
     [](ProgramT &p) {
       find(p, 0, Opcode::PostSend).mutate_kind(ValueKind::Gradient);
     }},
    {"StartOfNoCommunicator", Rule::Structure,
     "expected a communicator below 5, got 5",
     [](ProgramT &p) { find(p, 0, Opcode::AllReduceStart).mutate_target(5); }},
    {"StartOfOtherKind", Rule::Structure,
     "expected weight gradient, as the communicator has, got loss",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart).mutate_kind(ValueKind::Loss);
     }},
    {"StartOfOtherStage", Rule::Structure,
     "expected the communicator's stage 0, got 3",
     [](ProgramT &p) { find(p, 0, Opcode::AllReduceStart).mutate_stage(3); }},
    {"StartByAStranger", Rule::Structure,
     "this worker contributes nothing to communicator 1",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart).mutate_target(1);
       find(p, 0, Opcode::AllReduceStart).mutate_stage(1);
     }},
    {"StartWithTooFewContributions", Rule::Structure,
     "expected 2 operands and 1 results, got 1 and 1",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart, 2).mutate_operands(1);
     }},
    {"SumOfOtherKind", Rule::Structure,
     "expected a buffer of weight gradient, got one of tokens",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::AllReduceStart), 1) =
           someBuffer(p, 0, ValueKind::Tokens);
     }},
    {"ContributionOfOtherKind", Rule::Structure,
     "expected a buffer of weight gradient, got one of tokens",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::AllReduceStart), 0) =
           someBuffer(p, 0, ValueKind::Tokens);
     }},
    {"ContributionOfOtherSize", Rule::Structure,
     "expected contributions of the sum's 120 bytes, got 128",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::AllReduceStart), 1));
     }},
    {"ForwardOfAGradient", Rule::Structure,
     "expected (tokens, weights) -> (activation, stash), got (gradient, "
     "weights) -> (activation, stash)",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Forward), 0) =
           someBuffer(p, 0, ValueKind::Gradient);
     }},
    {"LastForwardWithoutLabels", Rule::Structure,
     "expected (activation, weights, labels) -> (loss, stash), got",
     [](ProgramT &p) {
       Instruction &forward = find(p, 0, Opcode::Forward, 1);
       forward.mutate_first_operand(forward.first_operand() + 1);
       forward.mutate_operands(2);
     }},
    {"FirstBackwardWithAnInputGradient", Rule::Structure,
     "-> (weight gradient), got",
     [](ProgramT &p) {
       find(p, 0, Opcode::Backward).mutate_results(2);
     }},
    {"GradientOfOtherSizeThanWeights", Rule::Structure,
     "expected equal bytes of weights and weight gradient, got 128 and 120",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::Backward), 3));
       shrink(bufferOf(p, 0, find(p, 0, Opcode::AllReduceStart), 1));
     }},
    {"StepIntoOtherSize", Rule::Structure,
     "expected buffers of one kind and size, got 128 bytes of weights in buffer "
     "0 and 152 of weights in buffer 3",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 3) =
           someBuffer(p, 0, ValueKind::Weights, 1);
     }},
    {"OptimizerStateNotInPlace", Rule::Structure,
     "expected the optimizer state in place in buffer 1, got buffer 4",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 4) =
           someBuffer(p, 0, ValueKind::OptimizerState, 1);
     }},
    {"ForwardOverItsInput", Rule::Structure,
     "expected a result apart from its other buffers",
     [](ProgramT &p) {
       Instruction &forward = find(p, 1, Opcode::Forward);
       operand(p, 1, forward, 2) = operand(p, 1, forward, 0);
     }},
    {"StepOfOtherMicroBatches", Rule::Structure,
     "expected the label of all 4 micro-batches of its step, got [0, 3)",
     [](ProgramT &p) {
       find(p, 0, Opcode::OptimizerStep).mutate_micro_batches(3);
     }},
    {"SecondForward", Rule::Structure, "is there a second time",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::Forward),
              find(p, 0, Opcode::Forward));
     }},
    {"TooFewInstructionsForItsMicroBatches", Rule::Structure,
     "expected backwards for 4 stages and 9000000 micro-batches",
     [](ProgramT &p) {
       p.micro_batches = 9000000;
       for (uint32_t m = 4; m < p.micro_batches; ++m)
         p.pipelines[1]->micro_batches.push_back(m);
       for (uint32_t w = 0; w < 4; ++w)
         for (Instruction &each : worker(p, w).instructions)
           if (each.opcode() == Opcode::OptimizerStep)
             each.mutate_micro_batches(p.micro_batches);
     }},

    // Waits.
    {"PostWithoutWait", Rule::Waits, "no wait after it in its section",
     [](ProgramT &p) {
       Instruction &wait = find(p, 0, Opcode::Wait);
       wait = Instruction(Opcode::ZeroGradient, ValueKind::WeightGradient, 0, 1,
                          0, 0, 0, 1, 0, worker(p, 0).instructions[0].first_operand(),
                          0, 1, 0, 0);
     }},
    {"TwoWaitsForOne", Rule::Waits, "already has a wait, instruction",
     [](ProgramT &p) {
       uint32_t wait = indexOf(p, 0, Opcode::Wait);
       insert(p, 0, wait + 1, worker(p, 0).instructions[wait]);
     }},
    {"WaitForAComputation", Rule::Waits, "expected a post or start, got worker "
                                         "0 instruction 0 (zero_gradient",
     [](ProgramT &p) { find(p, 0, Opcode::Wait).mutate_target(0); }},
    {"WaitForWhatComesLater", Rule::Waits,
     "expected a post or start before it in its section",
     [](ProgramT &p) {
       find(p, 0, Opcode::Wait).mutate_target(indexOf(p, 0, Opcode::Wait));
     }},

    // Matching.
    {"LabelsOfDifferentKind", Rule::Matching,
     "channel from worker 0 to worker 1: expected send 0 and receive 0 to agree",
     [](ProgramT &p) {
       Instruction &send = find(p, 0, Opcode::PostSend);
       send.mutate_kind(ValueKind::Tokens);
       operand(p, 0, send, 0) = someBuffer(p, 0, ValueKind::Tokens);
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
       // That of stage 2, which worker 1 has too.
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
       // Both the start and its wait become something harmless.
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
           // One operand less; the result follows them.
           uint32_t k = each.operands() - 1u;
           operand(p, w, each, k) = operand(p, w, each, k + 1);
           each.mutate_operands(static_cast<uint16_t>(k));
         }
     }},
    {"StartsOfDifferentBytes", Rule::Matching,
     "expected start 0 of equal bytes",
     [](ProgramT &p) {
       Instruction &start = find(p, 0, Opcode::AllReduceStart, 2);
       for (uint32_t k = 0; k < 3; ++k)
         bufferOf(p, 0, start, k).mutate_bytes(16);
     }},

    // Buffers.
    {"ReadOfNothing", Rule::Buffers, "reads what nothing has written",
     [](ProgramT &p) {
       Instruction &load = find(p, 0, Opcode::Load);
       load = worker(p, 0).instructions[0]; // another zero_gradient
     }},
    {"ReadOfWhatIsReceived", Rule::Buffers,
     "reads what is still being received or summed",
     [](ProgramT &p) {
       // The wait before the first forward of worker 1 moves behind it.
       uint32_t wait = indexOf(p, 1, Opcode::Wait);
       uint32_t forward = indexOf(p, 1, Opcode::Forward);
       std::vector<Instruction> &stream = worker(p, 1).instructions;
       ASSERT_EQ(wait + 1, forward);
       std::swap(stream[wait], stream[forward]);
     }},
    {"WriteOfWhatIsReceived", Rule::Buffers,
     "writes what is still being received or summed",
     [](ProgramT &p) {
       sendGradientInstead(p);
       insert(p, 2, indexOf(p, 2, Opcode::PostRecv) + 1,
              worker(p, 2).instructions[1]);
     }},
    {"WriteOfWhatIsSent", Rule::Buffers,
     "writes what is still being sent or summed",
     [](ProgramT &p) {
       sendGradientInstead(p);
       insert(p, 1, indexOf(p, 1, Opcode::PostSend) + 1,
              worker(p, 1).instructions[0]);
     }},
    {"WriteOfWhatIsSummed", Rule::Buffers,
     "writes what is still being sent or summed",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::AllReduceStart) + 1,
              worker(p, 0).instructions[0]);
     }},
    {"ReadOfTheSumBeforeItsWait", Rule::Buffers,
     "reads what is still being received or summed",
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
           .mutate_offset(bufferOf(p, 0, forward, 0).offset() + 24);
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
           w.buffers[w.states[0].weights()].offset() + 8);
     }},

    // Weights.
    {"WeightsOfAnotherStage", Rule::Weights,
     "expected the weights of pipeline 0 stage 1, got those of pipeline 1 stage "
     "2",
     [](ProgramT &p) {
       operand(p, 1, find(p, 1, Opcode::Forward), 1) =
           worker(p, 1).states[1].weights();
     }},
    {"ForwardOfAnotherVersionThanStated", Rule::Weights,
     "expected weights 3 versions older than the newest, as stated, which are "
     "those after -3 updates, got those after 0",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_weight_version(3); }},
    {"GradientIntoAnotherSum", Rule::Weights,
     "expected the gradient sum of pipeline 0 stage 1, got that of pipeline 1 "
     "stage 2",
     [](ProgramT &p) {
       worker(p, 1).instructions[0].mutate_pipeline(1);
       worker(p, 1).instructions[0].mutate_stage(2);
     }},
    {"MicroBatchLeftOutOfTheSum", Rule::Weights,
     "expected the sum of all gradients that its label names, over all "
     "pipelines and copies, got one of",
     [](ProgramT &p) {
       // Zeroed once more between the two backwards of pipeline 0.
       insert(p, 1, indexOf(p, 1, Opcode::Backward) + 1,
              worker(p, 1).instructions[0]);
     }},
    {"SumOverTooFewPipelines", Rule::Weights,
     "expected the sum of all gradients that its label names, over all "
     "pipelines and copies, got one of 2 backwards between micro-batch 0 and 1 "
     "of stage 0",
     [](ProgramT &p) {
       // Worker 0 takes its own sum.
       Instruction &step = find(p, 0, Opcode::OptimizerStep);
       operand(p, 0, step, 2) =
           operand(p, 0, find(p, 0, Opcode::AllReduceStart), 0);
     }},
    {"StepIntoAnotherPlace", Rule::Weights,
     "worker 0 state of pipeline 0 stage 0: expected the newest weights at the "
     "end, after 1 updates, got those of pipeline 0 stage 0 after 0",
     [](ProgramT &p) {
       WorkerT &w = worker(p, 0);
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 3) =
           static_cast<uint32_t>(w.buffers.size());
       w.buffers.emplace_back(ValueKind::Weights, w.arena_bytes, 128);
       w.arena_bytes += 128;
     }},
    {"SecondUpdate", Rule::Weights,
     "expected the label of the update after 1 others, got that of the one "
     "after 0",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::OptimizerStep),
              find(p, 0, Opcode::OptimizerStep));
     }},
    {"NoUpdate", Rule::Weights,
     "worker 0: expected 1 updates of pipeline 0 stage 0 by the end of step 0, "
     "got 0",
     [](ProgramT &p) {
       // It becomes something harmless.
       find(p, 0, Opcode::OptimizerStep) = find(p, 0, Opcode::ZeroGradient);
     }},
    {"GradientsReducedTwice", Rule::Weights,
     "expected the gradient sum of this worker alone, got one that is reduced",
     [](ProgramT &p) {
       // Each member sums the sum once more, into its contribution.
       uint32_t c = find(p, 0, Opcode::AllReduceStart).target();
       for (uint32_t w = 0; w < p.workers.size(); ++w)
         for (uint32_t i = 0; i < worker(p, w).instructions.size(); ++i) {
           Instruction start = worker(p, w).instructions[i];
           if (start.opcode() != Opcode::AllReduceStart || start.target() != c)
             continue;
           std::vector<uint32_t> &pool = worker(p, w).operands;
           uint32_t given = operand(p, w, start, 0);
           uint32_t sum = operand(p, w, start, start.operands());
           start.mutate_first_operand(static_cast<uint32_t>(pool.size()));
           pool.insert(pool.end(), {sum, given});
           uint32_t wait = i;
           while (worker(p, w).instructions[wait].opcode() != Opcode::Wait ||
                  worker(p, w).instructions[wait].target() != i)
             ++wait;
           Instruction again = worker(p, w).instructions[wait];
           insert(p, w, wait + 1, start);
           again.mutate_target(wait + 1);
           insert(p, w, wait + 2, again);
           break;
         }
     }},
    {"AnotherStagesOptimizerState", Rule::Weights,
     "expected the newest optimizer state of pipeline 0 stage 0, after 0 "
     "updates, got that of pipeline 1 stage 3 after 0",
     [](ProgramT &p) {
       // Both of stages of one size: exchanged at all uses.
       for (uint32_t w : {0u, 3u})
         for (State &state : worker(p, w).states)
           worker(p, w).buffers[state.optimizer_state()].mutate_bytes(256);
       p.stages[3].mutate_optimizer_bytes(256);
       std::vector<State> &states = worker(p, 0).states;
       for (uint32_t k : {0u, 1u}) {
         Instruction &step = find(p, 0, Opcode::OptimizerStep, k);
         for (uint32_t o : {1u, 4u})
           operand(p, 0, step, o) = states[1 - k].optimizer_state();
       }
     }},

    // Memory.
    {"PeakHigherThanStated", Rule::Memory, "bytes as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_bytes -= 8; }},
    {"PeakLowerThanStated", Rule::Memory, "bytes as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_bytes += 8; }},
    {"PeakElsewhere", Rule::Memory, "bytes at instruction 0 as stated, got",
     [](ProgramT &p) { worker(p, 2).peak_instruction = 0; }},
    {"CapExceeded", Rule::Memory, "bytes, its cap, got",
     [](ProgramT &p) {
       worker(p, 2).memory_cap = worker(p, 2).peak_bytes - 1;
     }},
};

class VerifyErrors : public testing::TestWithParam<Case> {};

TEST_P(VerifyErrors, IsRefused) {
  ProgramT program = sample();
  ASSERT_TRUE(verifyProgram(program).empty());
  GetParam().change(program);
  std::vector<Violation> violations = verifyProgram(program);
  ASSERT_FALSE(violations.empty());
  std::string all;
  bool found = false;
  for (const Violation &violation : violations) {
    EXPECT_EQ(violation.rule, GetParam().rule) << violation.message;
    found |= violation.message.find(GetParam().message) != std::string::npos;
    all += violation.message + "\n";
  }
  EXPECT_TRUE(found) << all;
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyErrors, testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });

TEST(VerifyErrorsTable, CasesHaveNames) {
  std::vector<std::string> names;
  for (const Case &each : kCases)
    names.push_back(each.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

} // namespace
} // namespace chimera::program
