//===- RangesTest.cpp - Refused ranges, parts and recomputes --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case breaks a program in which a forward covers two micro-batches and a
// backward covers half of a micro-batch. All backwards except the first one
// after each forward have a recompute.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimera::program {
namespace {

// Micro-batches 0 to 3 belong to pipeline 0. Worker 0 has stage 0 of pipeline 0
// and stage 3 of pipeline 1. Worker 3 has stage 3 of pipeline 0 and stage 0 of
// pipeline 1.
ProgramT sample(bool splitBackward) {
  return samplePipeline({.workers = 4,
                         .microBatches = 8,
                         .bidirectional = true,
                         .splitBackward = splitBackward,
                         .doubledForwards = true,
                         .backwardParts = 2,
                         .recompute = SampleOptions::Recompute::AllButFirst});
}

/// The first forward of the last stage, on worker 0. It covers micro-batches 4
/// and 5.
Instruction &lastForward(ProgramT &program) {
  return find(program, 0, Opcode::Forward, 1);
}

/// The first action with this opcode for a micro-batch of a pipeline on worker
/// `w`.
Instruction &action(ProgramT &program, uint32_t w, Opcode opcode,
                    uint32_t pipeline, uint32_t microBatch) {
  for (Instruction &each : worker(program, w).instructions)
    if (each.opcode() == opcode && each.pipeline() == pipeline &&
        each.micro_batch() == microBatch)
      return each;
  ADD_FAILURE() << "the sample has no such action";
  return worker(program, w).instructions.front();
}

/// A send of an activation's gradient on worker `w`: the first one if `skip` is
/// 0, the second one if it is 1, and so on.
Instruction &gradientPost(ProgramT &program, uint32_t w, uint32_t skip = 0) {
  for (Instruction &each : worker(program, w).instructions)
    if (each.opcode() == Opcode::PostSend &&
        each.kind() == ValueKind::Gradient && skip-- == 0)
      return each;
  ADD_FAILURE() << "the sample sends no gradient";
  return worker(program, w).instructions.front();
}

/// Replaces an instruction by a copy of the worker's first instruction, a
/// zero_gradient, which has no effect.
void erase(ProgramT &program, uint32_t w, Instruction &instruction) {
  instruction = worker(program, w).instructions.front();
}

void swapOperands(ProgramT &program, uint32_t w, const Instruction &one,
                  const Instruction &other, uint32_t k) {
  std::swap(operand(program, w, one, k), operand(program, w, other, k));
}

struct RangeCase : Refusal {
  bool splitBackward = false;
};

const RangeCase kRangeCases[] = {
    // Faults in the tables of the program.
    {"TooFewInForwards", Rule::Structure,
     "pipeline 0: expected forwards that cover its 4 micro-batches, got 3",
     [](ProgramT &p) {
       p.pipelines[0]->forwards = {2, 1};
     }},
    {"TooManyInForwards", Rule::Structure,
     "expected forwards that cover its 4 micro-batches, got one of 3 after the "
     "first 2",
     [](ProgramT &p) {
       p.pipelines[0]->forwards = {2, 3};
     }},
    {"ForwardOfNone", Rule::Structure, "got one of 0 after the first 2",
     [](ProgramT &p) {
       p.pipelines[0]->forwards = {2, 0, 2};
     }},
    {"ForwardOfScatteredMicroBatches", Rule::Structure,
     "expected a forward to cover consecutive micro-batches, got 2 after 0",
     [](ProgramT &p) {
       p.pipelines[0]->micro_batches = {0, 2, 4, 6};
       p.pipelines[1]->micro_batches = {1, 3, 5, 7};
     }},
    {"NoParts", Rule::Structure, "expected 1 to 255 parts of a backward, got 0",
     [](ProgramT &p) { p.pipelines[1]->backward_parts = 0; }},
    {"TooManyParts", Rule::Structure, "parts of a backward, got 256",
     [](ProgramT &p) { p.pipelines[1]->backward_parts = 256; }},
    {"PartsThatDoNotDivideTheMicroBatch", Rule::Structure,
     "that divide the micro-batch size 3, got 2",
     [](ProgramT &p) {
       p.model = std::make_unique<PackageT>();
       p.micro_batch_size = 3;
     }},
    {"PartsThatDoNotDivideTheBoundary", Rule::Structure,
     "that divide the 63 boundary bytes of stage 1, got 2",
     [](ProgramT &p) {
       Stage &s = p.stages[1];
       s = Stage(s.first_layer(), s.layers(), s.forward(), s.backward(),
                 s.input_gradient(), s.weight_gradient(), s.recompute(),
                 s.update(), s.weights_bytes(), s.optimizer_bytes(),
                 s.stash_bytes(), s.weight_stash_bytes(), 63, s.copy_bytes());
     }},

    // Faults in the labels of instructions: their micro-batches and parts.
    {"ForwardOfHalfItsRange", Rule::Structure,
     "expected the micro-batches of one forward of its pipeline, 2 from "
     "micro-batch 0, got 1 from 0",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_micro_batches(1); }},
    {"ForwardOfTwoRanges", Rule::Structure, "got 2 from 1",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_micro_batch(1); }},
    {"ForwardOfAPart", Rule::Structure, "got 2 from 0 in 2 parts",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_parts(2); }},
    {"LoadOfHalfTheRange", Rule::Structure, "got 1 from 0",
     [](ProgramT &p) { find(p, 0, Opcode::Load).mutate_micro_batches(1); }},
    {"ActivationOfHalfTheRange", Rule::Structure, "got 1 from 0",
     [](ProgramT &p) { find(p, 0, Opcode::PostSend).mutate_micro_batches(1); }},
    {"GradientOfAWholeMicroBatch", Rule::Structure,
     "expected one micro-batch, or one of 2 parts of it, in each backward of "
     "its pipeline, got 1 in 1 parts",
     [](ProgramT &p) {
       gradientPost(p, 1).mutate_part(0);
       gradientPost(p, 1).mutate_parts(1);
     }},
    {"GradientOfTheFirstStage", Rule::Structure,
     "the first stage makes no gradient to send",
     [](ProgramT &p) { gradientPost(p, 1).mutate_stage(0); }},
    {"LossOfAPart", Rule::Structure,
     "expected one micro-batch in each backward of its pipeline, got 1 in 2 "
     "parts",
     [](ProgramT &p) {
       Instruction send = gradientPost(p, 0);
       send.mutate_kind(ValueKind::Loss);
       insert(p, 0, 0, send);
     }},
    {"BackwardOfAWholeMicroBatch", Rule::Structure, "got 1 in 1 parts",
     [](ProgramT &p) { find(p, 0, Opcode::Backward).mutate_parts(1); }},
    {"BackwardOfARange", Rule::Structure, "got 2 in 2 parts",
     [](ProgramT &p) { find(p, 0, Opcode::Backward).mutate_micro_batches(2); }},
    {"RecomputeOfARange", Rule::Structure, "got 2 in 2 parts",
     [](ProgramT &p) {
       find(p, 0, Opcode::Recompute).mutate_micro_batches(2);
     }},
    {"LabelsOfDifferentPart", Rule::Matching,
     "part 1 of 2 to worker 0) at sample.mlir:2:3 with 32 bytes",
     [](ProgramT &p) { gradientPost(p, 1).mutate_part(1); }},

    // Faults in the sizes of buffers.
    {"TokensThatPartsDoNotDivide", Rule::Structure,
     "expected bytes of tokens that its 2 micro-batches divide, and the 2 "
     "parts of one, got 34",
     [](ProgramT &p) {
       bufferOf(p, 0, find(p, 0, Opcode::Load), 0).mutate_bytes(34);
     }},
    {"LossOfOtherSize", Rule::Structure, "expected 8 bytes of loss, got 16",
     [](ProgramT &p) { bufferOf(p, 0, lastForward(p), 3).mutate_bytes(16); }},
    {"TokensOfOtherSizeThanTheFirst", Rule::Structure,
     "expected 64 bytes of tokens, got 56",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::Forward, 2), 0));
     }},
    {"ActivationOfOtherSize", Rule::Structure,
     "expected 128 bytes of activation, got 120",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::Forward), 2));
     }},
    {"InputOfOtherSize", Rule::Structure,
     "expected 128 bytes of activation, got 120",
     [](ProgramT &p) { shrink(bufferOf(p, 0, lastForward(p), 0)); }},
    {"GradientOfOtherSize", Rule::Structure,
     "expected 32 bytes of gradient, got 24",
     [](ProgramT &p) {
       shrink(bufferOf(p, 3, find(p, 3, Opcode::Backward), 5));
     }},
    {"TooFewLosses", Rule::Structure,
     "expected (activation, weights, labels) -> (loss, loss), got",
     [](ProgramT &p) { lastForward(p).mutate_results(1); }},
    {"OneBufferForTwoLosses", Rule::Structure,
     "expected a result apart from its other buffers",
     [](ProgramT &p) {
       operand(p, 0, lastForward(p), 4) = operand(p, 0, lastForward(p), 3);
     }},

    // Faults in the set of actions.
    {"ForwardMissing", Rule::Structure,
     "expected a forward of pipeline 0 stage 0 micro-batch 0, got none",
     [](ProgramT &p) { erase(p, 0, find(p, 0, Opcode::Forward)); }},
    {"BackwardMissing", Rule::Structure,
     "expected a backward, or an input and a weight gradient, of pipeline 0 "
     "stage 3 micro-batch 0 part 0, got none",
     [](ProgramT &p) { erase(p, 3, find(p, 3, Opcode::Backward)); }},
    {"InputGradientMissing", Rule::Structure, "got a weight gradient alone",
     [](ProgramT &p) { erase(p, 3, find(p, 3, Opcode::InputGradient)); }, true},
    {"WeightGradientMissing", Rule::Structure, "got an input gradient alone",
     [](ProgramT &p) { erase(p, 3, find(p, 3, Opcode::WeightGradient)); },
     true},
    {"SecondBackward", Rule::Structure,
     "expected each action once, got it a second time",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::Backward),
              find(p, 0, Opcode::Backward));
     }},
    {"SecondRecompute", Rule::Structure,
     "expected each action once, got it a second time",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::Recompute),
              find(p, 0, Opcode::Recompute));
     }},
    {"RecomputeMissing", Rule::Structure,
     "to make 2 stashes, one for each backward without a recompute, got 1",
     [](ProgramT &p) { erase(p, 3, find(p, 3, Opcode::Recompute)); }},
    {"StashMissing", Rule::Structure,
     "expected the forward of pipeline 0 stage 0 micro-batch 0 to make 1 "
     "stashes, one for each backward without a recompute, got 0",
     [](ProgramT &p) { find(p, 0, Opcode::Forward).mutate_results(1); }},

    // Faults in the values that instructions read.
    {"StashOfAnotherPart", Rule::Values,
     "expected the stash of stage 0 micro-batch 0 part 0, got the stash of "
     "stage 0 micro-batch 0 part 1",
     [](ProgramT &p) {
       // Run both recomputes first, so that both stashes exist.
       move(p, 0, indexOf(p, 0, Opcode::Recompute),
            indexOf(p, 0, Opcode::Backward));
       swapOperands(p, 0, find(p, 0, Opcode::Backward, 0),
                    find(p, 0, Opcode::Backward, 1), 0);
     }},
    {"WeightStashOfAnotherPart", Rule::Values,
     "expected the weight stash of stage 0 micro-batch 0 part 0, got the "
     "weight "
     "stash of stage 0 micro-batch 0 part 1",
     [](ProgramT &p) {
       move(p, 0, indexOf(p, 0, Opcode::WeightGradient),
            indexOf(p, 0, Opcode::WeightGradient, 1));
       swapOperands(p, 0, find(p, 0, Opcode::WeightGradient, 0),
                    find(p, 0, Opcode::WeightGradient, 1), 0);
     },
     true},
    {"LossOfAnotherMicroBatch", Rule::Values,
     "expected the loss of micro-batch 4, got the loss of micro-batch 5",
     [](ProgramT &p) {
       for (Instruction &each : worker(p, 0).instructions)
         if (each.opcode() == Opcode::Backward && each.pipeline() == 1) {
           operand(p, 0, each, 1) = operand(p, 0, lastForward(p), 4);
           return;
         }
     }},
    {"LossesInAnotherOrder", Rule::Values,
     "expected the loss of micro-batch 4, got the loss of micro-batch 5",
     [](ProgramT &p) {
       for (Instruction &each : worker(p, 0).instructions)
         if (each.opcode() == Opcode::AllReduceStart &&
             each.kind() == ValueKind::Loss)
           std::swap(operand(p, 0, each, 0), operand(p, 0, each, 1));
     }},
    {"LossesSummedTooEarly", Rule::Values,
     "expected the loss of micro-batch 5 after all backwards that take it, got "
     "it before 1 of them",
     [](ProgramT &p) {
       auto &list = worker(p, 0).instructions;
       uint32_t start = 0, backward = 0;
       for (uint32_t i = 0; i < list.size(); ++i)
         if (list[i].opcode() == Opcode::AllReduceStart &&
             list[i].kind() == ValueKind::Loss)
           start = i;
         else if (list[i].opcode() == Opcode::Backward &&
                  list[i].pipeline() == 1 && list[i].micro_batch() == 5)
           backward = i;
       move(p, 0, start, backward);
     }},
    {"ForwardOfAnotherActivation", Rule::Values,
     "expected the activation of stage 0 micro-batch 2, got the activation of "
     "stage 0 micro-batch 0",
     [](ProgramT &p) {
       operand(p, 1, action(p, 1, Opcode::Forward, 0, 2), 0) =
           operand(p, 1, action(p, 1, Opcode::Forward, 0, 0), 0);
     }},
    {"RecomputeOfAnotherActivation", Rule::Values,
     "expected the activation of stage 0 micro-batch 0, got the activation of "
     "stage 0 micro-batch 2",
     [](ProgramT &p) {
       operand(p, 1, action(p, 1, Opcode::Recompute, 0, 1), 0) =
           operand(p, 1, action(p, 1, Opcode::Forward, 0, 2), 0);
     }},
    {"RecomputeOfOtherTokens", Rule::Values,
     "expected the tokens of micro-batch 0, got the tokens of micro-batch 2",
     [](ProgramT &p) {
       operand(p, 0, action(p, 0, Opcode::Recompute, 0, 1), 0) =
           operand(p, 0, action(p, 0, Opcode::Forward, 0, 2), 0);
     }},
    {"RecomputeOfOtherLabels", Rule::Values,
     "expected the labels of micro-batch 6, got the labels of micro-batch 4",
     [](ProgramT &p) {
       operand(p, 0, action(p, 0, Opcode::Recompute, 1, 7), 2) =
           operand(p, 0, lastForward(p), 2);
     }},
    {"GradientOfAnotherPartSent", Rule::Values,
     "expected the gradient of stage 1 micro-batch 0 part 1, got the gradient "
     "of stage 1 micro-batch 0 part 0",
     [](ProgramT &p) {
       Instruction &second = gradientPost(p, 1, 1);
       operand(p, 1, second, 0) = operand(p, 1, gradientPost(p, 1), 0);
     }},
    {"BackwardOfAnotherGradient", Rule::Values,
     "expected the gradient of stage 1 micro-batch 0 part 1, got the gradient "
     "of stage 1 micro-batch 0 part 0",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Backward, 1), 1) =
           operand(p, 0, find(p, 0, Opcode::Backward), 1);
     }},

    // Faults in the weights that instructions read.
    {"RecomputeOfOtherWeights", Rule::Weights,
     "expected the weights of pipeline 0 stage 0, got those of pipeline 1 "
     "stage 3",
     [](ProgramT &p) {
       equaliseStageSizes(p);
       operand(p, 0, action(p, 0, Opcode::Recompute, 0, 1), 1) =
           operand(p, 0, lastForward(p), 1);
     }},
    {"RecomputeBeforeItsForward", Rule::Weights,
     "expected a forward of micro-batch 0 before it, got none",
     [](ProgramT &p) {
       move(p, 0, indexOf(p, 0, Opcode::Recompute),
            indexOf(p, 0, Opcode::Forward));
     }},
};

class VerifyRanges : public testing::TestWithParam<RangeCase> {};

TEST_P(VerifyRanges, IsRefused) {
  expectRefused(sample(GetParam().splitBackward), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyRanges,
                         testing::ValuesIn(kRangeCases), nameOfCase<RangeCase>);

} // namespace
} // namespace chimera::program
