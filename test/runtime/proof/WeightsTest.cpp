//===- WeightsTest.cpp - Refused weight versions and gradient sums --------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

const Refusal kWeightCases[] = {
    {"WeightsOfAnotherStage", Rule::Weights,
     "expected the weights of pipeline 0 stage 1, got those of pipeline 1 "
     "stage "
     "2",
     [](ProgramT &p) {
       equaliseStageSizes(p);
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
       equaliseStageSizes(p);
       worker(p, 1).instructions[0].mutate_pipeline(1);
       worker(p, 1).instructions[0].mutate_stage(2);
     }},
    {"MicroBatchLeftOutOfTheSum", Rule::Weights,
     "expected the gradients of a whole update to reduce, got one of 1 "
     "backward "
     "between micro-batch 1 and 1 of stage 1",
     [](ProgramT &p) {
       // Insert a second zero_gradient between the two backwards of pipeline 0.
       insert(p, 1, indexOf(p, 1, Opcode::Backward) + 1,
              worker(p, 1).instructions[0]);
     }},
    {"SumBegunTwice", Rule::Weights,
     "expected the gradients of a whole update to reduce, got one of 1 "
     "backward "
     "between micro-batch 1 and 1 of stage 1",
     [](ProgramT &p) {
       // Let the second backward of pipeline 0 overwrite the gradient sum
       // instead of adding to it.
       Instruction &second = find(p, 1, Opcode::Backward, 2);
       ASSERT_EQ(second.pipeline(), 0);
       for (uint32_t k = 3; k < 3u + second.results(); ++k)
         operand(p, 1, second, k) = operand(p, 1, second, k + 1);
       second.mutate_operands(3);
     }},
    {"SumOverTooFewPipelines", Rule::Weights,
     "expected the sum of all gradients that its label names, over all "
     "pipelines and copies, got one of 2 backwards between micro-batch 0 and 1 "
     "of stage 0",
     [](ProgramT &p) {
       // Let worker 0 update with its own sum instead of the reduced one.
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
     "worker 0: expected 1 update of pipeline 0 stage 0 by the end of step 0, "
     "got 0",
     [](ProgramT &p) {
       // Replaces the update by an instruction without effect.
       find(p, 0, Opcode::OptimizerStep) = find(p, 0, Opcode::ZeroGradient);
     }},
    {"GradientsReducedTwice", Rule::Weights,
     "expected the gradient sum of this worker alone, got one that is reduced",
     [](ProgramT &p) {
       // Let each member start the all-reduce once more, with the sum as its
       // contribution and the contribution's buffer as the result.
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
       // Exchange two optimizer states at all their uses, after giving both the
       // same size.
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
};

class VerifyWeights : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyWeights, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyWeights,
                         testing::ValuesIn(kWeightCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
