//===- CommunicatorsTest.cpp - Refused communicators ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/proof/Refused.h"

#include <algorithm>

namespace chimera::program {
namespace {

const Refusal kCommunicatorCases[] = {
    {"CommunicatorOfActivations", Rule::Structure,
     "expected weight gradients, losses or squared norms, got activation",
     [](ProgramT &p) { p.communicators[0]->kind = ValueKind::Activation; }},
    {"CommunicatorOfNoStage", Rule::Structure,
     "communicator 1: expected a stage below 4, got 4",
     [](ProgramT &p) {
       for (Contribution &each : p.communicators[1]->contributions)
         each.mutate_stage(4);
     }},
    {"CommunicatorOfTwoStages", Rule::Structure,
     "communicator 0: expected contributions of one stage, got stages 0 and 2",
     [](ProgramT &p) { p.communicators[0]->contributions[1].mutate_stage(2); }},
    {"CommunicatorOfNobody", Rule::Structure,
     "expected contributions, got none",
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
};

class VerifyCommunicators : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyCommunicators, IsRefused) {
  expectRefused(sampleBothWays(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyCommunicators,
                         testing::ValuesIn(kCommunicatorCases),
                         nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
