//===- ArenaUseTest.cpp - Bytes of the arena that hold a value ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/ArenaUse.h"
#include "runtime/interpreter/ZeroCopy.h"

#include "test/runtime/interpreter/WriteByHand.h"
#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace chimera::program {
namespace {

// Weights and optimizer states are always live. A received value is live from
// the post of its receive on.
TEST(ArenaUse, FollowsValuesFromWriteToLastUse) {
  WorkerT worker;
  worker.buffers = {{ValueKind::Weights, 0, 100},
                    {ValueKind::OptimizerState, 128, 50},
                    {ValueKind::Activation, 192, 8},
                    {ValueKind::Stash, 0, 1000},
                    {ValueKind::Activation, 256, 4}};
  worker.states.emplace_back(0, 0, 0, 1);
  auto add = [&](Opcode opcode, uint32_t target,
                 const std::vector<uint32_t> &operands,
                 const std::vector<uint32_t> &results) {
    append(worker, opcode, target, operands, results);
  };
  add(Opcode::ZeroGradient, 0, {}, {});
  add(Opcode::PostRecv, 0, {}, {2});
  add(Opcode::Wait, 1, {}, {});
  add(Opcode::Forward, 0, {2, 0}, {4, 3});
  add(Opcode::PostSend, 0, {4}, {});
  add(Opcode::ZeroGradient, 0, {}, {});
  add(Opcode::Wait, 4, {}, {});
  add(Opcode::ZeroGradient, 0, {}, {});
  EXPECT_EQ(runtime::arenaBytesInUse(worker),
            (std::vector<uint64_t>{150, 158, 158, 162, 154, 154, 154, 150}));
}

// In samples every buffer has only one value. So the maximum of the used bytes
// is the peak that the program states.
TEST(ArenaUse, WithStashesItIsThePeakThatProgramsState) {
  for (bool split : {false, true}) {
    ProgramT program =
        samplePipeline({.bidirectional = true,
                        .splitBackward = split,
                        .doubledForwards = split,
                        .backwardParts = split ? 2u : 1u,
                        .recompute = SampleOptions::Recompute::AllButFirst,
                        .stashBytes = 0,
                        .weightStashBytes = 0});
    for (const auto &worker : program.workers) {
      std::vector<uint64_t> inUse = runtime::arenaBytesInUse(*worker);
      EXPECT_EQ(*std::max_element(inUse.begin(), inUse.end()),
                worker->peak_bytes);
    }
  }
}

// The blocks of memory that the interpreter allocates for an arena have at most
// the bytes of the arena. The verifier compares a worker's cap with the bytes
// of the arena. So a worker allocates no more than its cap.
TEST(ArenaUse, BlocksTakeNoMoreThanTheArena) {
  for (ProgramT program :
       {samplePipeline({.bidirectional = true, .tokenBytes = 200}),
        samplePipeline({.doubledForwards = true, .backwardParts = 2})})
    for (const auto &worker : program.workers) {
      uint64_t allocated = 0;
      for (uint64_t bytes : runtime::blocksOf(program, *worker).bytes)
        allocated += (bytes + 63) / 64 * 64;
      EXPECT_LE(allocated, worker->arena_bytes);
    }
}

} // namespace
} // namespace chimera::program
