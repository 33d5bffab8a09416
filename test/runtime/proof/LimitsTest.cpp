//===- LimitsTest.cpp - Refused numbers and texts -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/LargePrograms.h"
#include "test/runtime/proof/Refused.h"

#include <cmath>

namespace chimera::program {
namespace {

const Refusal kLimitCases[] = {
    {"NameWithControlCharacters", Rule::Structure,
     "expected a name of printable UTF-8 characters, got '\\x1b[2Jgone'",
     [](ProgramT &p) { p.name = "\x1b[2Jgone"; }},
    {"ScheduleThatIsNoText", Rule::Structure,
     "expected a schedule of printable",
     [](ProgramT &p) { p.schedule = "\xc3("; }},
    {"ProducerOfTwoLines", Rule::Structure, "expected a producer of printable",
     [](ProgramT &p) { p.producer = "a\nb"; }},
    {"UnitWithControlCharacters", Rule::Structure,
     "expected a time unit of printable",
     [](ProgramT &p) { p.time_unit = "\r"; }},
    {"OptimizerWithControlCharacters", Rule::Structure,
     "expected a optimizer of printable",
     [](ProgramT &p) { p.optimizer->name = "\a"; }},
    {"FileWithControlCharacters", Rule::Structure,
     "expected a file of locations of printable",
     [](ProgramT &p) { p.files[0] = "\x1b]0;title\a"; }},
    {"NameTooLong", Rule::Structure,
     "expected at most 4096 bytes as the name, got 4097",
     [](ProgramT &p) { p.name.assign(4097, 'x'); }},
    {"TooManyStages", Rule::Structure, "expected at most 65536 stages",
     [](ProgramT &p) { p.stages.resize(65537); }},
    {"TooManyRanks", Rule::Structure,
     "expected at most 1048576 ranks (workers times data-parallel copies), got "
     "400000000",
     [](ProgramT &p) { p.data_parallel = 100000000; }},
    {"TooManyRanksToCount", Rule::Structure, "got 17179869180",
     [](ProgramT &p) { p.data_parallel = UINT32_MAX; }},
    {"NegativeRate", Rule::Structure,
     "optimizer: expected a learning rate of at least 0, got -1",
     [](ProgramT &p) { p.optimizer->learning_rate = -1; }},
    {"RateThatIsNoNumber", Rule::Structure,
     "optimizer: expected a learning rate of at least 0, got nan",
     [](ProgramT &p) { p.optimizer->learning_rate = NAN; }},
    {"InfiniteRate", Rule::Structure,
     "optimizer: expected a learning rate of at least 0, got inf",
     [](ProgramT &p) { p.optimizer->learning_rate = INFINITY; }},
    {"Beta1TooLarge", Rule::Structure,
     "optimizer: expected a beta1 in [0, 1), got 1",
     [](ProgramT &p) { p.optimizer->beta1 = 1; }},
    {"Beta2Negative", Rule::Structure,
     "optimizer: expected a beta2 in [0, 1), got -0.5",
     [](ProgramT &p) { p.optimizer->beta2 = -0.5; }},
    {"EpsilonThatIsNoNumber", Rule::Structure,
     "optimizer: expected a epsilon of at least 0, got nan",
     [](ProgramT &p) { p.optimizer->epsilon = NAN; }},
    {"InfiniteDecay", Rule::Structure,
     "optimizer: expected a weight decay of at least 0, got inf",
     [](ProgramT &p) { p.optimizer->weight_decay = INFINITY; }},
    {"MinLrAboveTheRate", Rule::Structure,
     "optimizer: expected min_lr to be at most the learning rate of 0.001, got "
     "0.5",
     [](ProgramT &p) { p.optimizer->min_lr = 0.5; }},
    {"TooManyWarmupSteps", Rule::Structure,
     "optimizer: expected at most 1099511627776 steps of warmup, got "
     "18446744073709551615",
     [](ProgramT &p) { p.optimizer->warmup = UINT64_MAX; }},
    {"UnknownRateSchedule", Rule::Structure, "optimizer: unknown lr_schedule 9",
     [](ProgramT &p) { p.optimizer->lr_schedule = RateSchedule(9); }},
    {"WsdWithoutDecay", Rule::Structure,
     "optimizer: expected decay_steps with lr_schedule wsd, got 0",
     [](ProgramT &p) {
       p.optimizer->lr_schedule = RateSchedule::WarmupStableDecay;
     }},
    {"DecayWithoutWsd", Rule::Structure,
     "optimizer: expected no decay_steps with lr_schedule cosine, got 3",
     [](ProgramT &p) {
       p.optimizer->lr_schedule = RateSchedule::Cosine;
       p.optimizer->decay_steps = 3;
     }},
    {"ScheduleTooShort", Rule::Structure,
     "optimizer: expected lr_steps of at least 8, the steps of warmup and "
     "decay_steps, got 7",
     [](ProgramT &p) {
       p.optimizer->lr_schedule = RateSchedule::WarmupStableDecay;
       p.optimizer->warmup = 5;
       p.optimizer->decay_steps = 3;
       p.optimizer->lr_steps = 7;
     }},
    {"TooManyPatterns", Rule::Structure,
     "optimizer: expected at most 64 patterns in no_decay, got 65",
     [](ProgramT &p) { p.optimizer->no_decay.resize(65, "*"); }},
    {"PatternOfTwoLines", Rule::Structure,
     "expected a pattern of no_decay of printable",
     [](ProgramT &p) { p.optimizer->no_decay = {"a\nb"}; }},
    {"PatternsOfNoMuon", Rule::Structure,
     "optimizer: expected no patterns in no_muon with 'adamw', got 1",
     [](ProgramT &p) { p.optimizer->no_muon = {"*"}; }},
    {"PatternOfNoMuon", Rule::Structure,
     "expected a pattern of no_muon of printable",
     [](ProgramT &p) {
       p.optimizer->name = "muon";
       p.optimizer->no_muon = {"a\nb"};
     }},
    {"MomentumOfOne", Rule::Structure,
     "optimizer: expected a momentum in [0, 1), got 1",
     [](ProgramT &p) { p.optimizer->momentum = 1; }},
    {"MomentumOfAdamW", Rule::Structure,
     "optimizer: expected no momentum with 'adamw', got 0.5",
     [](ProgramT &p) { p.optimizer->momentum = 0.5; }},
    {"NegativeCost", Rule::Structure,
     "stage 1: expected costs of at least 0, got -3",
     [](ProgramT &p) { p.stages[1].mutate_input_gradient(-3); }},
    {"WeightsTooLarge", Rule::Structure,
     "stage 1: expected less than 2^48 bytes of weights, got 281474976710656",
     [](ProgramT &p) { p.stages[1].mutate_weights_bytes(kMaxBytes + 1); }},
    {"NothingButACopy", Rule::Structure,
     "stage 1: expected a copy of less than the 136 bytes of weights, got 136",
     [](ProgramT &p) {
       p.stages[1].mutate_copy_bytes(p.stages[1].weights_bytes());
     }},
    {"BoundaryTooLarge", Rule::Structure,
     "stage 0: expected less than 2^48 bytes of boundary",
     [](ProgramT &p) { p.stages[0].mutate_boundary_bytes(UINT64_MAX); }},
    {"StashTooLarge", Rule::Structure,
     "stage 2: expected less than 2^48 bytes of stash",
     [](ProgramT &p) { p.stages[2].mutate_stash_bytes(UINT64_MAX); }},
    {"OptimizerStateTooLarge", Rule::Structure,
     "stage 3: expected less than 2^48 bytes of optimizer state",
     [](ProgramT &p) { p.stages[3].mutate_optimizer_bytes(UINT64_MAX); }},
    {"ArenaTooLarge", Rule::Structure,
     "worker 0: expected less than 2^48 bytes of arena",
     [](ProgramT &p) { chainBuffersToTheEnd(worker(p, 0)); }},
    {"StashesTooLargeTogether", Rule::Structure,
     "worker 0: expected less than 2^48 bytes of stashes together",
     [](ProgramT &p) {
       for (int i = 0; i < 3; ++i)
         worker(p, 0).buffers.emplace_back(ValueKind::Stash, 0, kMaxBytes / 2);
     }},
    {"BufferOfUnknownKind", Rule::Structure, "buffer 3: unknown kind 44",
     [](ProgramT &p) { worker(p, 0).buffers[3].mutate_kind(ValueKind(44)); }},
    {"BufferTooLarge", Rule::Structure,
     "expected its 1125899906842624 bytes inside the arena of",
     [](ProgramT &p) {
       worker(p, 0).buffers[3].mutate_bytes(uint64_t(1) << 50);
     }},
    {"PoolEntryOfTwoInstructions", Rule::Structure,
     "operands and results of its pool in total, got",
     [](ProgramT &p) {
       std::vector<Instruction> &stream = worker(p, 0).instructions;
       stream.push_back(find(p, 0, Opcode::Forward));
       worker(p, 0).body_end = static_cast<uint32_t>(stream.size());
     }},
    {"UnusedBufferOutOfPlace", Rule::Structure,
     "expected activation at a multiple of 64 bytes, got offset 8",
     [](ProgramT &p) {
       worker(p, 0).buffers.emplace_back(ValueKind::Activation, 8, 8);
     }},
    {"BufferOutsideTheArena", Rule::Structure, "bytes inside the arena of",
     [](ProgramT &p) {
       worker(p, 0).buffers[3].mutate_offset(UINT64_MAX - 7);
     }},
};

class VerifyLimits : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyLimits, IsRefused) { expectRefused(sampleBothWays(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyLimits,
                         testing::ValuesIn(kLimitCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
