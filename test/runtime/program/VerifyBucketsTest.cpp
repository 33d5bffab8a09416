//===- VerifyBucketsTest.cpp - Gradients that are reduced in buckets ------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/VerifyInternal.h"
#include "test/runtime/program/Refused.h"

namespace chimera::program {
namespace {

/// Cuts the sample's gradients into two buckets each: those of stage 0 into
/// equal ones.
class Cutter {
public:
  Cutter(ProgramT &program, uint32_t w)
      : program(program), w(w), stream(worker(program, w)) {}

  void run() {
    for (uint32_t i = 0; i < stream.instructions.size(); ++i)
      if (const Instruction &start = stream.instructions[i];
          start.opcode() == Opcode::AllReduceStart &&
          start.kind() == ValueKind::WeightGradient)
        i = cut(i);
  }

private:
  /// Buffers in the place of `whole`.
  std::vector<uint32_t> piecesOf(uint32_t whole) {
    Buffer place = stream.buffers[whole];
    uint64_t first = (place.bytes() / 2 + 7) / 8 * 8;
    auto next = static_cast<uint32_t>(stream.buffers.size());
    stream.buffers.emplace_back(ValueKind::WeightGradient, place.offset(),
                                first);
    stream.buffers.emplace_back(ValueKind::WeightGradient,
                                place.offset() + first, place.bytes() - first);
    return {next, next + 1};
  }

  Instruction make(Opcode opcode, const Instruction &like,
                   const std::vector<uint32_t> &buffers, uint16_t operands) {
    Instruction made = like;
    made.mutate_opcode(opcode);
    made.mutate_first_operand(static_cast<uint32_t>(stream.operands.size()));
    made.mutate_operands(operands);
    made.mutate_results(static_cast<uint16_t>(buffers.size() - operands));
    stream.operands.insert(stream.operands.end(), buffers.begin(),
                           buffers.end());
    return made;
  }

  /// Returns the last start's index.
  uint32_t cut(uint32_t i) {
    const Instruction start = stream.instructions[i];
    uint32_t whole = operand(program, w, start, 0);
    uint32_t sum = operand(program, w, start, 1);
    std::vector<uint32_t> given = piecesOf(whole), sums = piecesOf(sum);
    Instruction label = start;
    // Pipeline 0 goes down: its stage s is on worker s.
    label.mutate_pipeline(start.stage() == w ? 0 : 1);
    Instruction starts[2];
    for (uint32_t k : {0u, 1u}) {
      starts[k] = make(Opcode::AllReduceStart, start, {given[k], sums[k]}, 1);
      starts[k].mutate_micro_batch(k);
      starts[k].mutate_micro_batches(2);
    }
    insert(program, w, i,
           make(Opcode::Split, label, {whole, given[0], given[1]}, 1));
    stream.instructions[i + 1] = starts[0];
    insert(program, w, i + 2, starts[1]);
    uint32_t wait = i + 3;
    while (stream.instructions[wait].opcode() != Opcode::Wait ||
           stream.instructions[wait].target() != i + 1)
      ++wait;
    Instruction second = stream.instructions[wait];
    second.mutate_target(i + 2);
    insert(program, w, wait + 1, second);
    insert(program, w, wait + 2,
           make(Opcode::Join, label, {sums[0], sums[1], sum}, 2));
    return i + 2;
  }

  ProgramT &program;
  uint32_t w;
  WorkerT &stream;
};

ProgramT sampleInBuckets() {
  ProgramT program = sampleBothWays();
  for (uint32_t w = 0; w < program.workers.size(); ++w)
    Cutter(program, w).run();
  verify::Report report(program);
  std::vector<verify::Footprint> found = verify::verifyBuffers(program, report);
  EXPECT_TRUE(report.empty()) << report.list.front().message;
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    worker(program, w).peak_bytes = found[w].peak;
    worker(program, w).peak_instruction = found[w].peakInstruction;
  }
  return program;
}

TEST(Buckets, AreAccepted) {
  ProgramT program = sampleInBuckets();
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

/// No byte moves, so nothing is counted twice.
TEST(Buckets, HoldAsManyBytesAsTheWhole) {
  ProgramT whole = sampleBothWays(), cut = sampleInBuckets();
  for (uint32_t w = 0; w < whole.workers.size(); ++w)
    EXPECT_LE(worker(cut, w).peak_bytes, worker(whole, w).peak_bytes);
}

/// Equal bytes, bucket by bucket, do not show it where sums are cut and reduced
/// several times.
TEST(Buckets, BeginWhereThoseOfOthersDo) {
  ProgramT program = sampleInBuckets();
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

const Refusal kCases[] = {
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
    {"APieceOfHalfAnElement", Rule::Structure,
     "expected pieces of whole elements, of 8 bytes each, got 62 bytes",
     [](ProgramT &p) {
       p.model = sampleModel();
       Instruction &split = find(p, 0, Opcode::Split);
       Buffer &first = bufferOf(p, 0, split, 1);
       Buffer &second = bufferOf(p, 0, split, 2);
       first.mutate_bytes(first.bytes() - 2);
       second.mutate_offset(second.offset() - 2);
       second.mutate_bytes(second.bytes() + 2);
     }},
    {"SplitOnAnotherWorker", Rule::Structure, "this stage is on worker 1",
     [](ProgramT &p) { find(p, 0, Opcode::Split).mutate_stage(1); }},
    {"OtherBucketAtAMember", Rule::Matching,
     "expected start 0 of equal buckets and bytes",
     [](ProgramT &p) {
       find(p, 0, Opcode::AllReduceStart).mutate_micro_batches(3);
     }},
    {"WholeUsedWhileCut", Rule::Buffers, "reads what nothing has written",
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
     "reads what is still being received or summed",
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
  expectRefused(sampleInBuckets(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Constraints, VerifyBuckets, testing::ValuesIn(kCases),
                         nameOfCase<Refusal>);

} // namespace
} // namespace chimera::program
