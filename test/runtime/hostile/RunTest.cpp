//===- RunTest.cpp - Every order of operations gives equal integers -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Run.h"

#include "runtime/proof/Verify.h"
#include "test/runtime/hostile/Peaks.h"
#include "test/runtime/program/AsynchronousPrograms.h"
#include "test/runtime/program/Changes.h"
#include "test/runtime/program/TiedPrograms.h"

#include <set>

using namespace chimera;
using namespace chimera::runtime;
using program::Opcode;
using program::ProgramT;
using program::SampleOptions;

namespace {
void expectEqualUnderSeeds(const ProgramT &program, uint64_t seeds) {
  for (const program::Violation &violation : program::verifyProgram(program))
    FAIL() << violation.message;
  SequentialResult expected = hostile::runSequentially(program, 3);
  for (uint64_t seed = 0; seed < seeds; ++seed)
    for (const hostile::RunOptions &options : hostile::runsOf(seed, 3)) {
      hostile::Outcome outcome = hostile::run(program, options);
      ASSERT_EQ(hostile::difference(program, outcome, expected), "")
          << "seed " << seed;
      ASSERT_EQ(outcome.hostBlocks, 0u);
    }
}

TEST(HostileRun, SamplesEqualTheSequentialRun) {
  for (uint32_t workers : {1, 2, 3, 4})
    for (uint32_t microBatches : {1, 2, 5})
      for (bool other : {false, true})
        expectEqualUnderSeeds(
            program::samplePipeline(
                {.workers = workers,
                 .microBatches = microBatches,
                 .bidirectional = other,
                 .splitBackward = !other,
                 .firstBackwardOverwrites = workers > 2,
                 .doubledForwards = other,
                 .backwardParts = 1 + microBatches % 2,
                 .recompute = other ? SampleOptions::Recompute::AllButFirst
                                    : SampleOptions::Recompute::None,
                 .dataParallel = 1 + microBatches / 2 % 2}),
            20);
  for (program::Updates updates :
       {program::Updates::EachMicroBatch, program::Updates::EachStep})
    for (uint32_t workers : {1, 2, 4})
      expectEqualUnderSeeds(
          program::sampleAsynchronous({.workers = workers,
                                       .microBatches = workers + 1,
                                       .firstBackwardOverwrites = workers > 1},
                                      updates),
          20);
}

TEST(HostileRun, TiedSamplesEqualTheSequentialRun) {
  for (uint32_t workers : {2, 3, 4})
    for (bool other : {false, true})
      expectEqualUnderSeeds(
          program::sampleTied({.workers = workers,
                               .microBatches = 4,
                               .bidirectional = other,
                               .dataParallel = 1 + workers % 2},
                              29, /*swapped=*/other),
          20);
}

TEST(HostileRun, ThreadsAreHeldAgainstAllOfOneDevice) {
  ProgramT program = program::samplePipeline({.workers = 2});
  SequentialResult expected = hostile::runSequentially(program, 2);
  EXPECT_EQ(hostile::differenceOnThreads(program, expected), "");
  SequentialResult other = expected;
  other.weights.back() ^= std::byte(1);
  EXPECT_EQ(hostile::differenceOnThreads(program, other), "other weights");
  other = expected;
  other.gradients.front() ^= std::byte(1);
  EXPECT_EQ(hostile::differenceOnThreads(program, other), "other gradients");
  other = expected;
  ++other.losses[1].sum;
  EXPECT_EQ(hostile::differenceOnThreads(program, other), "other losses");
}

// `difference` compares both copies of tied parameters, on the first and on the
// last stage, with the model's only copy.
TEST(HostileRun, TiedParametersAreComparedOnBothStages) {
  for (bool swapped : {false, true}) {
    ProgramT program = program::samplePipeline({.workers = 3});
    program.tied = std::make_unique<program::Tied>(swapped ? 128 - 20 : 0,
                                                   swapped ? 0 : 144 - 20, 20);
    SequentialResult expected = hostile::runSequentially(program, 0);
    const hostile::Outcome start = hostile::run(program, {.steps = 0});
    EXPECT_EQ(hostile::difference(program, start, expected), "");
    for (uint32_t rank = 0; rank < 3; ++rank)
      for (bool front : {false, true}) {
        hostile::Outcome other = start;
        auto &bytes = other.weights[rank].front().second;
        (front ? bytes.front() : bytes.back()) ^= std::byte(1);
        EXPECT_NE(hostile::difference(program, other, expected), "");
      }
  }
}

TEST(HostileRun, TheSameSeedGivesTheSameRun) {
  ProgramT program =
      program::samplePipeline({.workers = 4, .bidirectional = true});
  std::set<uint64_t> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    hostile::Outcome first = hostile::run(program, {.seed = seed});
    hostile::Outcome second = hostile::run(program, {.seed = seed});
    EXPECT_EQ(first.order, second.order);
    orders.insert(first.order);
  }
  EXPECT_EQ(orders.size(), 20u);
}

/// A program of two workers. Both wait for their first send before they post a
/// receive.
ProgramT bothSendFirst() {
  ProgramT program = program::samplePipeline(
      {.workers = 2, .microBatches = 2, .bidirectional = true});
  // In the sample, worker 0 already does so. Worker 1 must do it, too. So move
  // its instructions, from the last load before its first send to the wait for
  // this send, to the front.
  uint32_t send = indexOf(program, 1, Opcode::PostSend);
  uint32_t load = send;
  while (worker(program, 1).instructions[load].opcode() != Opcode::Load)
    --load;
  for (uint32_t to = 0; load + to <= send + 1; ++to)
    move(program, 1, load + to, to);
  hostile::setPeaks(program);
  return program;
}

TEST(HostileRun, ADeadlockReportNamesEveryRank) {
  ProgramT program = bothSendFirst();
  EXPECT_FALSE(program::verifyProgram(program).empty());
  for (uint64_t seed = 0; seed < 5; ++seed) {
    std::string failure = hostile::run(program, {.seed = seed}).failure;
    for (const char *part :
         {"no rank can advance:\n  rank 0, queue compute: at the wait of rank "
          "0 instruction ",
          " (wait ", "\n  rank 1, queue compute: at the wait of rank 1 ",
          "the send of rank 0 instruction "})
      EXPECT_NE(failure.find(part), std::string::npos) << failure << part;
  }
  program.message_model = program::MessageModel::Buffered;
  expectEqualUnderSeeds(program, 10);
}

TEST(HostileRun, ReadingBeforeTheWaitIsReported) {
  ProgramT program = program::samplePipeline({.workers = 2, .microBatches = 2});
  // In samples, the wait comes directly after the post. Move it after the
  // forward that reads the received value.
  uint32_t wait = indexOf(program, 1, Opcode::PostRecv) + 1;
  uint32_t forward = indexOf(program, 1, Opcode::Forward);
  move(program, 1, wait, forward + 1);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    std::string failure = hostile::run(program, {.seed = seed}).failure;
    EXPECT_NE(failure.find("no event orders the two"), std::string::npos)
        << failure;
  }
}
} // namespace
