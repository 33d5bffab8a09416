//===- BucketsTest.cpp - Gradients that are reduced in buckets ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/proof/Facts.h"
#include "test/runtime/program/BucketPrograms.h"
#include "test/runtime/proof/Refused.h"

namespace chimera::program {
namespace {

ProgramT sampleBothWaysInBuckets() {
  return sampleInBuckets(
      {.workers = 4, .microBatches = 4, .bidirectional = true});
}

TEST(Buckets, AreAccepted) {
  ProgramT program = sampleBothWaysInBuckets();
  for (const Violation &violation : verifyProgram(program))
    ADD_FAILURE() << violation.message;
  EXPECT_EQ(describe(program, 0, indexOf(program, 0, Opcode::Split)),
            "split pipeline 0 stage 0");
  EXPECT_EQ(describe(program, 0, indexOf(program, 0, Opcode::Join)),
            "join pipeline 0 stage 0");
  EXPECT_EQ(
      describe(program, 0, indexOf(program, 0, Opcode::AllReduceStart, 1)),
      "all_reduce_start weight gradient stage 0 bucket 1 of 2 communicator 0");
}

/// The pieces of a buffer cover its bytes. So cutting a gradient into buckets
/// does not raise the peak.
TEST(Buckets, HoldAsManyBytesAsTheWhole) {
  ProgramT whole = sampleBothWays(), cut = sampleBothWaysInBuckets();
  for (uint32_t w = 0; w < whole.workers.size(); ++w)
    EXPECT_LE(worker(cut, w).peak_bytes, worker(whole, w).peak_bytes);
}

TEST(Buckets, MayBeCutBetweenAnyWords) {
  for (int64_t bytes : {-56, -8, 8, 56}) {
    ProgramT program = sampleBothWaysInBuckets();
    EXPECT_TRUE(moveBucketBoundary(program, 0, 0, bytes));
    for (const Violation &violation : verifyProgram(program))
      if (violation.rule != Rule::Memory)
        ADD_FAILURE() << violation.message;
  }
}

TEST(Buckets, HaveSomethingLeftWhenCutElsewhere) {
  ProgramT program = sampleBothWaysInBuckets();
  EXPECT_FALSE(moveBucketBoundary(program, 0, 0, -64));
  EXPECT_FALSE(moveBucketBoundary(program, 0, 0, 64));
  EXPECT_FALSE(moveBucketBoundary(program, 0, 1, 8));
  EXPECT_TRUE(verifyProgram(program).empty());
}

/// A bucket must begin at the same byte of the gradient on all workers. Equal
/// sizes of the buckets are not enough if a sum is cut several times.
TEST(Buckets, BeginWhereThoseOfOthersDo) {
  ProgramT program = sampleBothWaysInBuckets();
  verify::Facts facts;
  verify::Report report(program);
  verify::verifyTables(program, facts, report);
  verify::verifyInstructions(program, facts, report);
  verify::verifyActions(program, facts, report);
  verify::verifyWaits(program, facts, report);
  verify::verifyMatching(program, facts, report);
  ASSERT_TRUE(report.empty());
  Buffer &first = bufferOf(program, 3, find(program, 3, Opcode::Split), 1);
  first.mutate_bytes(first.bytes() + 8);
  verify::verifyWeights(program, facts, report);
  ASSERT_FALSE(report.empty());
  EXPECT_NE(report.list[0].message.find(
                "expected a bucket from byte 64 on, as another worker gives, "
                "got one from byte 72"),
            std::string::npos)
      << report.list[0].message;
}

const Refusal kBucketCases[] = {
    {"ABucketTooMany", Rule::Structure,
     "expected a bucket below the number of buckets, got 2 of 2",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart).mutate_micro_batch(2);
     }},
    {"ABucketOfAWhole", Rule::Structure,
     "expected a bucket below the number of buckets, got 1 of 0",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart, 1).mutate_micro_batches(0);
     }},
    {"OnePiece", Rule::Structure,
     "expected a whole and at least two pieces, got 1 and 1",
     [](ProgramT &p) { find(p, 0, Opcode::Split).mutate_results(1); }},
    {"TwoWholes", Rule::Structure,
     "expected a whole and at least two pieces, got 2 and 1",
     [](ProgramT &p) {
       find(p, 0, Opcode::Split).mutate_operands(2);
       find(p, 0, Opcode::Split).mutate_results(1);
     }},
    {"APieceOfNothing", Rule::Structure,
     "expected pieces that fill the weight gradient at bytes",
     [](ProgramT &p) {
       bufferOf(p, 0, find(p, 0, Opcode::Split), 1).mutate_bytes(0);
     }},
    {"APieceElsewhere", Rule::Structure,
     "expected pieces that fill the weight gradient at bytes",
     [](ProgramT &p) {
       Buffer &piece = bufferOf(p, 0, find(p, 0, Opcode::Split), 2);
       piece.mutate_offset(piece.offset() + 8);
     }},
    {"APieceTooFew", Rule::Structure,
     "expected pieces that fill the weight gradient at bytes",
     [](ProgramT &p) {
       operand(p, 0, find(p, 0, Opcode::Join), 1) =
           operand(p, 0, find(p, 0, Opcode::Join), 0);
     }},
    {"AWholeTooLong", Rule::Structure,
     "expected pieces that fill the weight gradient at bytes",
     [](ProgramT &p) {
       shrink(bufferOf(p, 0, find(p, 0, Opcode::Split), 2));
       shrink(bufferOf(p, 0, find(p, 0, Opcode::AllReduceStart, 1), 1));
     }},
    {"APieceOfActivation", Rule::Structure,
     "expected pieces that fill the weight gradient at bytes",
     [](ProgramT &p) {
       bufferOf(p, 0, find(p, 0, Opcode::Split), 1)
           .mutate_kind(ValueKind::Activation);
     }},
    {"SplitOnAnotherWorker", Rule::Structure, "this stage is on worker 1",
     [](ProgramT &p) { find(p, 0, Opcode::Split).mutate_stage(1); }},
    {"StartsOfDifferentBytes", Rule::Matching,
     "expected start 0 of equal buckets and bytes",
     [](ProgramT &p) {
       const ProgramT whole = p;
       ASSERT_TRUE(moveBucketBoundary(p, 0, 0, -8));
       for (size_t w = 1; w < p.workers.size(); ++w)
         p.workers[w]->buffers = whole.workers[w]->buffers;
     }},
    {"OtherBucketAtAMember", Rule::Matching,
     "expected start 0 of equal buckets and bytes",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart).mutate_micro_batches(3);
     }},
    {"WholeUsedWhileCut", Rule::Buffers,
     "reads a buffer that nothing has written",
     [](ProgramT &p) {
       uint32_t split = indexOf(p, 0, Opcode::Split);
       insert(p, 0, split + 1, worker(p, 0).instructions[split]);
     }},
    {"WholeWrittenWhileCut", Rule::Buffers, "overlaps",
     [](ProgramT &p) {
       insert(p, 0, indexOf(p, 0, Opcode::Split) + 1,
              worker(p, 0).instructions[0]);
     }},
    {"PieceJoinedBeforeItsWait", Rule::Buffers,
     "reads a buffer that is still being received or summed",
     [](ProgramT &p) {
       uint32_t join = indexOf(p, 0, Opcode::Join);
       move(p, 0, join, join - 1);
     }},
    {"OtherPieceThanLabelled", Rule::Weights,
     "expected the bucket of the gradient sum that its label names, got piece "
     "1 of 2 of the gradient sum of pipeline 0 stage 0",
     [](ProgramT &p) {
       std::swap(operand(p, 0, find(p, 0, Opcode::AllReduceStart, 0), 0),
                 operand(p, 0, find(p, 0, Opcode::AllReduceStart, 1), 0));
     }},
    {"CutInsideAnElement", Rule::Weights,
     "expected buckets that begin at multiples of 8 bytes, got byte 60",
     [](ProgramT &p) { EXPECT_TRUE(moveBucketBoundary(p, 0, 0, -4)); }},
    {"SplitOfAnotherReplica", Rule::Weights,
     "expected the gradient sum of pipeline 1 stage 3, whole or a part of it, "
     "got the gradient sum of "
     "pipeline 0 stage 0",
     [](ProgramT &p) {
       find(p, 0, Opcode::Split).mutate_pipeline(1);
       find(p, 0, Opcode::Split).mutate_stage(3);
     }},
    {"JoinOfAnotherReplica", Rule::Weights,
     "expected piece 0 of 2 of the gradient sum of pipeline 1 stage 3, reduced "
     "like the others, got piece 0 of 2 of the gradient sum of pipeline 0 "
     "stage 0, reduced",
     [](ProgramT &p) {
       find(p, 0, Opcode::Join).mutate_pipeline(1);
       find(p, 0, Opcode::Join).mutate_stage(3);
     }},
};

class VerifyBuckets : public testing::TestWithParam<Refusal> {};

TEST_P(VerifyBuckets, IsRefused) {
  expectRefused(sampleBothWaysInBuckets(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyBuckets,
                         testing::ValuesIn(kBucketCases), nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
