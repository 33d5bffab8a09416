//===- MutateTest.cpp - Mutants are refused or run to equal integers ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Judge.h"

#include "test/runtime/hostile/Peaks.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/BucketPrograms.h"
#include "test/runtime/program/TiedPrograms.h"

#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;
using program::Opcode;
using program::ProgramT;
using program::SampleOptions;

namespace {
std::vector<ProgramT> samples() {
  std::vector<ProgramT> programs;
  programs.push_back(program::samplePipeline(
      {.workers = 2, .microBatches = 4, .bidirectional = true}));
  programs.push_back(program::samplePipeline(
      {.workers = 3,
       .microBatches = 3,
       .firstBackwardOverwrites = true,
       .doubledForwards = true,
       .backwardParts = 2,
       .recompute = SampleOptions::Recompute::AllButFirst}));
  programs.push_back(program::samplePipeline({.workers = 2,
                                              .microBatches = 2,
                                              .splitBackward = true,
                                              .dataParallel = 2}));
  for (bool bidirectional : {false, true})
    programs.push_back(program::sampleTied(
        {.workers = 3, .microBatches = 3, .bidirectional = bidirectional}, 24,
        /*swapped=*/bidirectional));
  programs.push_back(program::sampleInBuckets(
      {.workers = 2, .microBatches = 2, .bidirectional = true}));
  for (program::Updates updates :
       {program::Updates::EachMicroBatch, program::Updates::EachStep})
    programs.push_back(program::sampleAsynchronous(
        {.workers = 3, .microBatches = 3}, updates));
  return programs;
}

TEST(Mutate, MutantsAreRefusedOrRunToEqualIntegers) {
  hostile::Judge judge(samples());
  for (uint64_t number = 0; number < 2000; ++number)
    EXPECT_EQ(judge.judge(number), "");
  // If the verifier refused or accepted everything, these checks would fail.
  hostile::Counts total = judge.total();
  EXPECT_EQ(total.all(), 2000u);
  EXPECT_GT(total.equal, 300u);
  EXPECT_LT(total.equal, 1500u);
}

TEST(Mutate, ANumberIsAMutant) {
  hostile::Judge first(samples()), second(samples());
  for (uint64_t number = 0; number < 200; ++number) {
    first.judge(number);
    second.judge(number);
    EXPECT_STREQ(first.current(), second.current());
  }
  EXPECT_EQ(first.table(), second.table());
}

TEST(Mutate, EachMutationAppliesToSomeSample) {
  std::vector<ProgramT> programs = samples();
  for (const hostile::Mutation &mutation : hostile::mutations()) {
    hostile::Random random(5);
    bool applied = false;
    for (uint32_t tries = 0; tries < 40 && !applied; ++tries) {
      ProgramT mutant = programs[tries % programs.size()];
      applied = mutation.apply(mutant, random);
    }
    EXPECT_TRUE(applied) << mutation.name;
  }
}

TEST(Mutate, WaitsFollowTheirPosts) {
  ProgramT program = program::samplePipeline({.workers = 2, .microBatches = 2});
  program::WorkerT &worker = *program.workers[1];
  hostile::rewrite(worker, [](hostile::Sections &sections) {
    sections[1].insert(sections[1].begin(), sections[1].back());
    sections[1].pop_back();
  });
  for (uint32_t i = 0; i < worker.instructions.size(); ++i)
    if (worker.instructions[i].opcode() == Opcode::Wait) {
      Opcode of = worker.instructions[worker.instructions[i].target()].opcode();
      EXPECT_TRUE(of == Opcode::PostSend || of == Opcode::PostRecv ||
                  of == Opcode::AllReduceStart);
    }
}

// Tests areIndependent with neighbours of which one needs the other.
TEST(Mutate, AConsumerIsNotIndependentOfItsWait) {
  ProgramT program = program::samplePipeline({.workers = 2, .microBatches = 2});
  const program::WorkerT &worker = *program.workers[1];
  uint32_t pairs = 0;
  for (uint32_t i = 0; i + 1 < worker.instructions.size(); ++i) {
    const program::Instruction &first = worker.instructions[i];
    if (first.opcode() == Opcode::PostRecv) {
      EXPECT_FALSE(hostile::areIndependent(worker, i));
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 2u);
}

// A loss is complete only after the backwards that take it.
TEST(Mutate, ASumOfALossIsNotIndependentOfABackwardThatTakesTheLoss) {
  using program::ValueKind;
  enum : uint32_t { kStash, kLoss, kGradient, kSum };
  program::WorkerT worker;
  worker.buffers = {{ValueKind::Stash, 0, 4},
                    {ValueKind::Loss, 0, 4},
                    {ValueKind::WeightGradient, 64, 4},
                    {ValueKind::Loss, 128, 4}};
  worker.operands = {kStash, kLoss, kGradient, kLoss, kSum};
  worker.instructions = {program::Instruction(), program::Instruction()};
  worker.body_end = 2;
  program::Instruction &backward = worker.instructions[0];
  backward.mutate_operands(2);
  backward.mutate_results(1);
  program::Instruction &sum = worker.instructions[1];
  sum.mutate_opcode(Opcode::AllReduceStart);
  sum.mutate_first_operand(3);
  sum.mutate_operands(1);
  sum.mutate_results(1);
  for (Opcode opcode : {Opcode::Backward, Opcode::InputGradient}) {
    backward.mutate_opcode(opcode);
    EXPECT_FALSE(hostile::areIndependent(worker, 0));
  }
  // A weight gradient does not take the loss.
  backward.mutate_opcode(Opcode::WeightGradient);
  backward.mutate_operands(1);
  worker.operands[1] = kGradient;
  EXPECT_TRUE(hostile::areIndependent(worker, 0));
}
} // namespace
