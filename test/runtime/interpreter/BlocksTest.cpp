//===- BlocksTest.cpp - The arena, divided into blocks --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/Blocks.h"

#include <gtest/gtest.h>

namespace chimera::program {
namespace {

using runtime::Blocks;
using runtime::blocksOf;

TEST(Blocks, CutsTheArenaWhereNoBufferIs) {
  WorkerT worker;
  worker.buffers = {{ValueKind::Activation, 128, 64},
                    {ValueKind::Stash, 0, 1000},
                    {ValueKind::Weights, 0, 100},
                    {ValueKind::Gradient, 160, 64},
                    {ValueKind::Activation, 256, 32}};
  Blocks blocks = blocksOf(ProgramT(), worker);
  EXPECT_EQ(blocks.bytes, (std::vector<uint64_t>{100, 96, 32}));
  auto expectPlace = [&](uint32_t buffer, uint32_t block, uint64_t offset) {
    EXPECT_EQ(blocks.locations[buffer].block, block) << buffer;
    EXPECT_EQ(blocks.locations[buffer].offset, offset) << buffer;
  };
  expectPlace(0, 1, 0);
  expectPlace(2, 0, 0);
  expectPlace(3, 1, 32);
  expectPlace(4, 2, 0);
}

TEST(Blocks, CutsTheArenaWhereAnyValueCanLie) {
  WorkerT worker;
  // A gradient may start at any byte, but the activation that overlaps it must
  // stay aligned to 64 bytes.
  worker.buffers = {{ValueKind::WeightGradient, 68, 100},
                    {ValueKind::Activation, 128, 64}};
  Blocks blocks = blocksOf(ProgramT(), worker);
  EXPECT_EQ(blocks.bytes, (std::vector<uint64_t>{128}));
  EXPECT_EQ(blocks.locations[0].offset, 4u);
  EXPECT_EQ(blocks.locations[1].offset, 64u);
}

TEST(Blocks, BlocksBeginWhereTheFileSays) {
  ProgramT program;
  program.buffer_alignment = 32;
  WorkerT worker;
  worker.buffers = {{ValueKind::WeightGradient, 100, 20}};
  Blocks blocks = blocksOf(program, worker);
  EXPECT_EQ(blocks.bytes, (std::vector<uint64_t>{24}));
  EXPECT_EQ(blocks.locations[0].offset, 4u);
}

// Two buffers of one size share the first block, and two of different sizes the
// second one. The third one begins before its buffer, because the buffer is not
// aligned.
TEST(Blocks, AreUniformIfEachBufferFillsThem) {
  WorkerT worker;
  worker.buffers = {{ValueKind::Tokens, 0, 64},
                    {ValueKind::Labels, 0, 64},
                    {ValueKind::Activation, 64, 32},
                    {ValueKind::Gradient, 64, 48},
                    {ValueKind::WeightGradient, 132, 28}};
  EXPECT_EQ(blocksOf(ProgramT(), worker).isUniform,
            (std::vector<bool>{true, false, false}));
}

} // namespace
} // namespace chimera::program
