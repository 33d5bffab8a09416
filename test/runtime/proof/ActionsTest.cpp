//===- ActionsTest.cpp - Refused sets of actions --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

const Refusal kActionCases[] = {
    {"NoActions", Rule::Structure,
     "expected a forward of pipeline 1 stage 0 micro-batch 2, got none",
     [](ProgramT &p) {
       // Replaces each action by a zero_gradient. Messages and all-reduces
       // remain.
       for (uint32_t w = 0; w < p.workers.size(); ++w)
         for (Instruction &each : worker(p, w).instructions)
           if (each.opcode() == Opcode::Forward ||
               each.opcode() == Opcode::Backward ||
               each.opcode() == Opcode::OptimizerStep)
             each = worker(p, w).instructions.front();
     }},
    {"SecondForward", Rule::Structure,
     "expected each action once, got it a second time",
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
};

class VerifyActions : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyActions, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyActions,
                         testing::ValuesIn(kActionCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
