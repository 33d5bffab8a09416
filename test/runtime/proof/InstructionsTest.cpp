//===- InstructionsTest.cpp - Refused instructions ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

const Refusal kInstructionCases[] = {
    {"BufferAtAnOddPlace", Rule::Structure,
     "expected activation at a multiple of 64 bytes, got offset",
     [](ProgramT &p) {
       Buffer &activation = bufferOf(p, 0, find(p, 0, Opcode::Forward), 2);
       activation.mutate_offset(activation.offset() + 8);
     }},
    {"UnknownOpcode", Rule::Structure, "unknown opcode or kind",
     [](ProgramT &p) {
       worker(p, 0).instructions[0].mutate_opcode(
           Opcode(size_t(Opcode::MAX) + 1));
     }},
    {"UnknownKind", Rule::Structure, "unknown opcode or kind",
     [](ProgramT &p) {
       worker(p, 0).instructions[0].mutate_kind(
           ValueKind(size_t(ValueKind::MAX) + 1));
     }},
    {"NoSuchLocation", Rule::Structure, "expected a location below 4, got 4",
     [](ProgramT &p) { worker(p, 0).instructions[0].mutate_location(4); }},
    {"GroupOfNothing", Rule::Structure, "expected that many posts",
     [](ProgramT &p) {
       insert(
           p, 0, 2,
           Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
     }},
    {"GroupPastTheSection", Rule::Structure, "expected that many posts",
     [](ProgramT &p) {
       insert(p, 0, 2,
              Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 9999, 0, 0, 0, 0,
                          0));
     }},
    {"GroupOfComputations", Rule::Structure,
     "expected a post, as part of the group before it",
     [](ProgramT &p) {
       insert(
           p, 0, 2,
           Instruction(Opcode::Group, {}, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0));
     }},
    {"WaitWithOperands", Rule::Structure, "expected no operands and results",
     [](ProgramT &p) {
       worker(p, 0).operands.push_back(0);
       find(p, 0, Opcode::Wait).mutate_operands(1);
     }},
    {"OperandsPastThePool", Rule::Structure,
     "expected operands inside the pool",
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
           indexOfBuffer(p, 0, ValueKind::Tokens);
     }},
    {"ContributionOfOtherKind", Rule::Structure,
     "expected a buffer of weight gradient, got one of tokens",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::AllReduceStart), 0) =
           indexOfBuffer(p, 0, ValueKind::Tokens);
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
           indexOfBuffer(p, 0, ValueKind::Gradient);
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
       worker(p, 0).operands.push_back(0);
       find(p, 0, Opcode::Backward).mutate_results(2);
     }},
    {"GradientOfOtherSizeThanWeights", Rule::Structure,
     "expected 128 bytes of weight gradient, got 120",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::Backward), 3));
       shrink(bufferOf(p, 0, find(p, 0, Opcode::AllReduceStart), 1));
     }},
    {"StepIntoOtherSize", Rule::Structure,
     "expected 128 bytes of weights, got 152",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 3) =
           indexOfBuffer(p, 0, ValueKind::Weights, 1);
     }},
    {"StepOfAnotherStagesState", Rule::Structure,
     "expected 256 bytes of optimizer state, got 304",
     [](ProgramT &p) {
       Instruction &step = find(p, 0, Opcode::OptimizerStep);
       operand(p, 0, step, 1) = operand(p, 0, step, 4) =
           indexOfBuffer(p, 0, ValueKind::OptimizerState, 1);
     }},
    {"ForwardWithAnotherStagesWeights", Rule::Structure,
     "expected 128 bytes of weights, got 152",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Forward), 1) =
           indexOfBuffer(p, 0, ValueKind::Weights, 1);
     }},
    {"StashSmallerThanItsStages", Rule::Structure,
     "expected 512 bytes of stash, got 504",
     [](ProgramT &p) {
       Instruction &forward = find(p, 0, Opcode::Forward);
       shrink(bufferOf(p, 0, forward, 3));
     }},
    {"OptimizerStateNotInPlace", Rule::Structure,
     "expected the optimizer state in place in buffer 1, got buffer 4",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 4) =
           indexOfBuffer(p, 0, ValueKind::OptimizerState, 1);
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
};

class VerifyInstructions : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyInstructions, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyInstructions,
                         testing::ValuesIn(kInstructionCases),
                         nameOfCase<Refusal>);

/// Checks that every buffer of a stash must have the size that the stage states
/// for a stash of this kind. This holds for each instruction that makes
/// stashes.
void expectStashes(const SampleOptions &options) {
  ProgramT program = samplePipeline(options);
  EXPECT_TRUE(verifyProgram(program).empty());
  uint32_t stashes = 0;
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    for (Buffer &buffer : worker(program, w).buffers) {
      if (!isStash(buffer.kind()))
        continue;
      ++stashes;
      const uint64_t bytes =
          (buffer.kind() == ValueKind::Stash ? options.stashBytes
                                             : options.weightStashBytes) /
          options.backwardParts;
      for (uint64_t other : {bytes - 1, bytes + 1}) {
        buffer.mutate_bytes(other);
        expectRefused(program, Rule::Structure,
                      "expected " + std::to_string(bytes) + " bytes of " +
                          nameOf(buffer.kind()) + ", got " +
                          std::to_string(other));
      }
      buffer.mutate_bytes(bytes);
    }
  EXPECT_GT(stashes, 0u);
}

TEST(Stashes, HaveTheBytesOfTheirStage) {
  using Recompute = SampleOptions::Recompute;
  for (Recompute recompute :
       {Recompute::None, Recompute::All, Recompute::AllButFirst})
    for (bool split : {false, true})
      expectStashes({.workers = 2,
                     .microBatches = 3,
                     .splitBackward = split,
                     .doubledForwards = true,
                     .recompute = recompute});
}

TEST(Stashes, OfPartsHaveTheirShare) {
  expectStashes({.workers = 2, .microBatches = 2, .backwardParts = 4});
}

TEST(Stashes, OfPartsAreRoundedUp) {
  ProgramT program = samplePipeline(
      {.workers = 2, .microBatches = 2, .backwardParts = 2, .stashBytes = 8});
  for (Stage &stage : program.stages)
    stage.mutate_stash_bytes(7);
  EXPECT_TRUE(verifyProgram(program).empty());
  for (Stage &stage : program.stages)
    stage.mutate_stash_bytes(9);
  expectRefused(program, Rule::Structure, "expected 5 bytes of stash, got 4");
}

} // namespace
} // namespace chimera::program
