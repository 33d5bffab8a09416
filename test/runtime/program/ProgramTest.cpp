//===- ProgramTest.cpp - Descriptions and sample programs -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <set>

namespace chimera::program {
namespace {

TEST(Program, CountsInWords) {
  EXPECT_EQ(countWithNoun(1, "worker"), "1 worker");
  EXPECT_EQ(countWithNoun(0, "worker"), "0 workers");
  EXPECT_EQ(countWithNoun(1, "micro-batch"), "1 micro-batch");
  EXPECT_EQ(countWithNoun(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(countWithNoun(1, "copy"), "1 copy");
  EXPECT_EQ(countWithNoun(12, "copy"), "12 copies");
}

/// The descriptions of the instructions of a worker's stream.
std::vector<std::string> stream(const ProgramT &program, uint32_t worker) {
  std::vector<std::string> lines;
  for (uint32_t i = 0; i < program.workers[worker]->instructions.size(); ++i)
    lines.push_back(describe(program, worker, i));
  return lines;
}

TEST(Program, DescribesEveryInstructionOfASmallPipeline) {
  ProgramT program = samplePipeline({.workers = 2, .microBatches = 1});
  EXPECT_EQ(stream(program, 0),
            (std::vector<std::string>{
                "zero_gradient pipeline 0 stage 0",
                "load tokens pipeline 0 stage 0 micro-batch 0",
                "forward pipeline 0 stage 0 micro-batch 0",
                "post_send activation pipeline 0 stage 0 micro-batch 0 to "
                "worker 1",
                "wait for post_send activation pipeline 0 stage 0 micro-batch "
                "0 to worker 1",
                "post_recv gradient pipeline 0 stage 1 micro-batch 0 from "
                "worker 1",
                "wait for post_recv gradient pipeline 0 stage 1 micro-batch 0 "
                "from worker 1",
                "backward pipeline 0 stage 0 micro-batch 0",
                "all_reduce_start weight gradient stage 0 communicator 0",
                "wait for all_reduce_start weight gradient stage 0 "
                "communicator 0",
                "optimizer_step pipeline 0 stage 0 micro-batch 0"}));
  EXPECT_EQ(stream(program, 1)[3],
            "load labels pipeline 0 stage 1 micro-batch 0");
}

TEST(Program, DescribesRangesAndParts) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 4});
  Instruction &load = program.workers[0]->instructions[1];
  load.mutate_micro_batches(3);
  EXPECT_EQ(describe(program, 0, 1),
            "load tokens pipeline 0 stage 0 micro-batches 0 to 2");
  load.mutate_micro_batches(1);
  load.mutate_part(1);
  load.mutate_parts(2);
  EXPECT_EQ(describe(program, 0, 1),
            "load tokens pipeline 0 stage 0 micro-batch 0 part 1 of 2");
}

TEST(Program, DescribesWhatIsMalformed) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  EXPECT_EQ(describe(program, 1, 0), "no such worker");
  EXPECT_EQ(describe(program, 0, 1000), "no such instruction");
  Instruction &first = program.workers[0]->instructions[0];
  first.mutate_opcode(Opcode(200));
  EXPECT_EQ(describe(program, 0, 0), "unknown opcode 200");
  first.mutate_opcode(Opcode::Wait);
  first.mutate_target(0);
  EXPECT_EQ(describe(program, 0, 0), "wait for wait for instruction 0");
  program.workers[0] = nullptr;
  EXPECT_EQ(describe(program, 0, 0), "no such worker");
}

TEST(Program, NamesAreDistinctAndUnknownPastTheEnd) {
  std::set<std::string> names;
  for (Opcode opcode : EnumValuesOpcode())
    names.insert(nameOf(opcode));
  EXPECT_EQ(names.size(), std::size(EnumValuesOpcode()));
  names.clear();
  for (ValueKind kind : EnumValuesValueKind())
    names.insert(nameOf(kind));
  EXPECT_EQ(names.size(), std::size(EnumValuesValueKind()));
  EXPECT_STREQ(nameOf(Opcode(size_t(Opcode::MAX) + 1)), "unknown");
  EXPECT_STREQ(nameOf(ValueKind(size_t(ValueKind::MAX) + 1)), "unknown");
  EXPECT_STREQ(nameOf(ValueKind::WeightGradient), "weight gradient");
}

TEST(Program, LocationsAreFileLineColumn) {
  ProgramT program = samplePipeline({.workers = 2, .microBatches = 1});
  Instruction &first = program.workers[1]->instructions[0];
  EXPECT_EQ(locationOf(program, first), "sample.mlir:2:3");
  first.mutate_location(UINT32_MAX);
  EXPECT_EQ(locationOf(program, first), "");
  program.locations[0].mutate_file(7);
  first.mutate_location(0);
  EXPECT_EQ(locationOf(program, first), "");
}

TEST(Program, OperandsComeBeforeResults) {
  ProgramT program = samplePipeline({.workers = 1, .microBatches = 1});
  const WorkerT &worker = *program.workers[0];
  const Instruction &forward = worker.instructions[3];
  ASSERT_EQ(forward.opcode(), Opcode::Forward);
  auto kinds = [&](std::span<const uint32_t> buffers) {
    std::vector<ValueKind> list;
    for (uint32_t buffer : buffers)
      list.push_back(worker.buffers[buffer].kind());
    return list;
  };
  EXPECT_EQ(
      kinds(operandsOf(worker, forward)),
      (std::vector{ValueKind::Tokens, ValueKind::Weights, ValueKind::Labels}));
  EXPECT_EQ(kinds(resultsOf(worker, forward)),
            (std::vector{ValueKind::Loss, ValueKind::Stash}));
}

TEST(Program, RanksAreWorkersTimesCopies) {
  EXPECT_EQ(rankCount(samplePipeline({.workers = 3, .dataParallel = 2})), 6u);
}

TEST(SamplePipeline, BidirectionalPutsMirroredStagesOnAWorker) {
  ProgramT program =
      samplePipeline({.workers = 4, .microBatches = 5, .bidirectional = true});
  ASSERT_EQ(program.pipelines.size(), 2u);
  EXPECT_EQ(program.pipelines[0]->workers, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(program.pipelines[1]->workers, (std::vector<uint32_t>{3, 2, 1, 0}));
  EXPECT_EQ(program.pipelines[0]->micro_batches,
            (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(program.pipelines[1]->micro_batches, (std::vector<uint32_t>{3, 4}));
  for (const auto &worker : program.workers)
    EXPECT_EQ(worker->states.size(), 2u);
}

} // namespace
} // namespace chimera::program
