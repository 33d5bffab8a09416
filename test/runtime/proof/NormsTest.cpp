//===- NormsTest.cpp - Refused squared norms ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

/// Like sampleBothWays, but it clips. Worker 1 has stage 1 of pipeline 0 and
/// stage 2 of pipeline 1.
ProgramT clippedSample() {
  return samplePipeline(
      {.workers = 4, .microBatches = 4, .bidirectional = true, .clips = true});
}

CommunicatorT &normsOf(ProgramT &program) {
  return *program.communicators.back();
}

const Refusal kNormCases[] = {
    {"NormOfOneReplicasGradient", Rule::Weights,
     "expected the whole gradient of an update, summed over all pipelines and "
     "copies, got one of 2 backwards between micro-batch 0 and 1 of stage 0",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::SquaredNorm), 0) =
           operand(p, 0, find(p, 0, Opcode::AllReduceStart), 0);
     }},
    {"NormOfAnotherStage", Rule::Weights,
     "expected the whole gradient of an update",
     [](ProgramT &p) {
       equaliseStageSizes(p);
       operand(p, 1, find(p, 1, Opcode::SquaredNorm), 0) =
           operand(p, 1, find(p, 1, Opcode::SquaredNorm, 1), 0);
     }},
    {"UpdateWithTheNormOfOneReplica", Rule::Weights,
     "expected the squared norm of the gradients of all stages for this "
     "update, got that of pipeline 0 stage 0 alone",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::OptimizerStep), 3) =
           operand(p, 0, find(p, 0, Opcode::SquaredNorm), 1);
     }},
    {"NormsInAnotherOrder", Rule::Weights,
     "expected the squared norm of pipeline 0 stage 1 alone, got that of "
     "pipeline 1 stage 2 alone",
     [](ProgramT &p) {
       // The worker first starts the all-reduces of its two stages.
       Instruction &start = find(p, 1, Opcode::AllReduceStart, 2);
       ASSERT_EQ(start.kind(), ValueKind::SquaredNorm);
       std::swap(operand(p, 1, start, 0), operand(p, 1, start, 1));
     }},
    {"OneNormLeftOut", Rule::Structure,
     "expected the squared norms of 8 stage replicas, got 7",
     [](ProgramT &p) { normsOf(p).contributions.pop_back(); }},
    {"NormOfAStageTwice", Rule::Structure,
     "expected contribution 1 from stage 1, got 2",
     [](ProgramT &p) {
       Contribution &second = normsOf(p).contributions[1];
       second = Contribution(second.worker(), second.key(), 2);
     }},
    {"UpdateWithoutANorm", Rule::Structure,
     "expected (weights, optimizer state, weight gradient, squared norm) -> "
     "(weights, optimizer state), got (weights, optimizer state, weight "
     "gradient) -> (weights, optimizer state)",
     [](ProgramT &p) {
       Instruction &step = find(p, 0, Opcode::OptimizerStep);
       for (uint32_t k = 3; k < 5; ++k)
         operand(p, 0, step, k) = operand(p, 0, step, k + 1);
       step.mutate_operands(3);
     }},
    {"NormThatNothingUses", Rule::Structure,
     "expected (weights, optimizer state, weight gradient) -> (weights, "
     "optimizer state), got (weights, optimizer state, weight gradient, "
     "squared norm) -> (weights, optimizer state)",
     [](ProgramT &p) { p.optimizer->clip_norm = 0; }},
    {"LimitThatIsNegative", Rule::Structure,
     "expected a clip_norm of at least 0, got -1",
     [](ProgramT &p) { p.optimizer->clip_norm = -1; }},
    {"NormOfAnotherSize", Rule::Structure,
     "expected 8 bytes of squared norm, got 16",
     [](ProgramT &p) {
       const uint32_t norm = operand(p, 0, find(p, 0, Opcode::SquaredNorm), 1);
       worker(p, 0).buffers[norm].mutate_bytes(16);
     }},
};

class VerifyNorms : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyNorms, IsRefused) { expectRefused(clippedSample(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyNorms,
                         testing::ValuesIn(kNormCases), nameOfCase<Refusal>);

TEST(VerifyNorms, AcceptsProgramsOfAllShapes) {
  for (uint32_t workers : {1, 2, 4})
    for (bool bidirectional : {false, true})
      for (uint32_t dataParallel : {1, 3})
        EXPECT_TRUE(
            verifyProgram(samplePipeline({.workers = workers,
                                          .microBatches = 4,
                                          .bidirectional = bidirectional,
                                          .dataParallel = dataParallel,
                                          .clips = true}))
                .empty())
            << workers << bidirectional << dataParallel;
}

TEST(VerifyNorms, RefusesClippingWithoutAFlush) {
  ProgramT program =
      sampleAsynchronous({.workers = 2, .microBatches = 4}, Updates::EachStep);
  ASSERT_TRUE(verifyProgram(program).empty());
  program.optimizer->clip_norm = 1;
  expectRefused(program, Rule::Structure,
                "expected steps that end with a flush if gradients are clipped "
                "by their norm (clip_norm)");
}

} // namespace
} // namespace chimera::program
