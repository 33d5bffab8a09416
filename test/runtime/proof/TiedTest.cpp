//===- TiedTest.cpp - Parameters that two stages have ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/SampleDescription.h"
#include "test/runtime/program/TiedPrograms.h"
#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

/// Worker 0 has stage 0 of pipeline 0 (128 bytes of weights) and stage 3 of
/// pipeline 1 (152 bytes). The first half of stage 0 is tied, so its two pieces
/// have equal sizes.
ProgramT sampleHalfTied() {
  return sampleTied({.workers = 4, .microBatches = 4, .bidirectional = true},
                    64);
}

TEST(Tied, IsAccepted) {
  for (uint32_t workers : {2, 3, 4})
    for (bool bidirectional : {false, true})
      for (uint32_t copies : {1, 2})
        for (bool swapped : {false, true})
          for (const Violation &violation :
               verifyProgram(sampleTied({.workers = workers,
               .bidirectional = bidirectional,
               .dataParallel = copies},
                                        24, swapped)))
            ADD_FAILURE() << violation.message;
}

TEST(Tied, IsRefusedWithoutAFlush) {
  ProgramT program = sampleAsynchronous({.workers = 2}, Updates::EachStep);
  program.tied =
      std::make_unique<Tied>(0, program.stages.back().weights_bytes() - 8, 8);
  expectRefused(program, Rule::Structure,
                "expected tied parameters with a flush only");
}

TEST(Tied, IsRefusedOnOneStage) {
  ProgramT program = samplePipeline({.workers = 1});
  program.tied = std::make_unique<Tied>(0, 8, 8);
  expectRefused(program, Rule::Structure,
                "expected two stages for tied parameters, got 1");
}

TEST(Tied, IsReducedApart) {
  ProgramT program = samplePipeline({.workers = 2});
  program.tied =
      std::make_unique<Tied>(0, program.stages.back().weights_bytes() - 8, 8);
  expectRefused(program, Rule::Weights,
                "expected the gradient sum of all but tied parameters of "
                "pipeline 0 stage 0, got the gradient sum of pipeline 0 stage "
                "0");
}

TEST(Tied, IsWhatTheModelSays) {
  // The tied matrix has the shape [16, 8] (vocabulary and width) and 8 bytes
  // per element.
  const SampleOptions options{.workers = 3, .microBatches = 2, .ofModel = true};
  ProgramT program = sampleTied(options, 16 * 8 * 8);
  const auto setTied = [&](bool tied) {
    SmallGpt2 gpt2 = gpt2Of(options);
    gpt2.tied = tied;
    setGpt2(program, gpt2);
  };
  setTied(true);
  EXPECT_TRUE(verifyProgram(program).empty());
  setTied(false);
  expectRefused(program, Rule::Structure,
                "expected none as tied parameters for this model, got 1024 "
                "bytes at 0 of the first stage and 128 of the last");
  setTied(true);
  program.tied->mutate_bytes(1016);
  expectRefused(program, Rule::Structure,
                "expected 1024 bytes at 0 of the first stage and 128 of the "
                "last as tied parameters for this model, got 1016 bytes");
  program.tied.reset();
  expectRefused(program, Rule::Structure,
                "as tied parameters for this model, got none");
}

const Refusal kTiedCases[] = {
    {"NotAtAnEnd", Rule::Structure,
     "expected tied parameters at one end of the 128 bytes of parameters of "
     "stage 0, got 64 bytes at 8",
     [](ProgramT &p) { p.tied->mutate_first_offset(8); }},
    {"Nothing", Rule::Structure, "got 0 bytes at 0",
     [](ProgramT &p) { *p.tied = Tied(0, 152, 0); }},
    {"TheWholeStage", Rule::Structure, "got 128 bytes at 0",
     [](ProgramT &p) { *p.tied = Tied(0, 24, 128); }},
    {"ReducedWhereNothingIs", Rule::Structure,
     "communicator 5: expected contributions of one stage, got stages 0 and 3",
     [](ProgramT &p) { p.tied.reset(); }},
    {"OfAnotherStage", Rule::Structure,
     "communicator 5: expected contribution 1 from stage 3, got 2",
     [](ProgramT &p) { p.communicators[5]->contributions[1].mutate_stage(2); }},
    {"NotInTurn", Rule::Structure,
     "communicator 5: expected contribution 2 from stage 0, got 3",
     [](ProgramT &p) {
       auto &list = p.communicators[5]->contributions;
       list.erase(list.begin() + 1);
       list[1].mutate_stage(3);
     }},
    {"AtTheOtherEnd", Rule::Weights,
     "expected two pieces, the 63 bytes of tied parameters after the others, "
     "got 2, of 64 bytes there",
     [](ProgramT &p) { *p.tied = Tied(65, 89, 63); }},
    {"TheRestForIt", Rule::Weights,
     "expected the gradient sum of all but tied parameters of pipeline 0 stage "
     "0, got the gradient sum of the tied parameters of pipeline 0 stage 0",
     [](ProgramT &p) {
       std::swap(operand(p, 0, find(p, 0, Opcode::AllReduceStart, 0), 0),
                 operand(p, 0, find(p, 0, Opcode::AllReduceStart, 2), 0));
     }},
    {"AnotherReplicas", Rule::Weights,
     "expected the gradient sum of pipeline 0 stage 0, got that of pipeline 1 "
     "stage 3",
     [](ProgramT &p) {
       Instruction &start = find(p, 0, Opcode::AllReduceStart, 2);
       std::swap(operand(p, 0, start, 0), operand(p, 0, start, 1));
     }},
    {"CopiedUnreduced", Rule::Weights,
     "expected a reduced gradient of tied parameters, got the gradient sum of "
     "the tied parameters of pipeline 0 stage 0",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Copy), 0) =
           operand(p, 0, find(p, 0, Opcode::AllReduceStart, 2), 0);
     }},
    {"CopiedForAnotherReplica", Rule::Weights,
     "expected the gradient sum of the tied parameters of pipeline 1 stage 3 "
     "as piece 1 of 2, got the gradient sum of the tied parameters of pipeline "
     "0 stage 0, reduced",
     [](ProgramT &p) {
       find(p, 0, Opcode::Copy).mutate_pipeline(0);
       find(p, 0, Opcode::Copy).mutate_stage(0);
     }},
};

class VerifyTied : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyTied, IsRefused) { expectRefused(sampleHalfTied(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyTied, testing::ValuesIn(kTiedCases),
                         nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
