//===- NormShareTest.cpp - Which squares a replica adds up ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/NormShare.h"

#include <gtest/gtest.h>

#include <vector>

namespace chimera::runtime {
namespace {

/// A program of three stages, of which only the tied parameters matter.
program::ProgramT programOf(std::optional<program::Tied> tied) {
  program::ProgramT program;
  program.stages.resize(3);
  if (tied)
    program.tied = std::make_unique<program::Tied>(*tied);
  return program;
}

/// How often the shares of all replicas have each byte of a gradient.
std::vector<int> countsOf(const program::ProgramT &program, uint32_t stage,
                          ElementType type, size_t bytes, uint64_t replicas) {
  const std::vector<std::byte> gradient(bytes);
  std::vector<int> counts(bytes);
  for (uint64_t replica = 0; replica < replicas; ++replica) {
    const ConstBytes share =
        normShareOf(program, stage, type, gradient, replica, replicas);
    for (const std::byte &each : share)
      ++counts[&each - gradient.data()];
  }
  return counts;
}

TEST(NormShare, CountsEachByteOnce) {
  const program::ProgramT program = programOf({});
  for (size_t bytes : {8, 16, 24, 800, 12344})
    for (uint64_t replicas : {1, 2, 3, 7, 64})
      for (ElementType type : {ElementType::Float32, ElementType::Float64,
                               ElementType::BFloat16, ElementType::UInt64})
        EXPECT_EQ(countsOf(program, 1, type, bytes, replicas),
                  std::vector<int>(bytes, 1))
            << bytes << " " << replicas;
}

TEST(NormShare, CutsNoElement) {
  const program::ProgramT program = programOf({});
  const std::vector<std::byte> gradient(808);
  for (uint64_t replicas : {3, 7})
    for (uint64_t replica = 0; replica < replicas; ++replica)
      EXPECT_EQ(normShareOf(program, 0, ElementType::Float64, gradient, replica,
                            replicas)
                        .size() %
                    8,
                0u);
}

TEST(NormShare, CountsAnIncompleteLastElement) {
  const program::ProgramT program = programOf({});
  EXPECT_EQ(countsOf(program, 0, ElementType::UInt64, 21, 2),
            std::vector<int>(21, 1));
}

TEST(NormShare, CountsTiedParametersOnTheFirstStageOnly) {
  for (uint64_t offset : {0, 60}) {
    const program::ProgramT program = programOf(program::Tied(0, offset, 20));
    std::vector<int> withoutTied(80, 1);
    for (size_t i = 0; i < 20; ++i)
      withoutTied[offset + i] = 0;
    for (uint64_t replicas : {1, 4}) {
      EXPECT_EQ(countsOf(program, 0, ElementType::Float32, 80, replicas),
                std::vector<int>(80, 1));
      EXPECT_EQ(countsOf(program, 1, ElementType::Float32, 80, replicas),
                std::vector<int>(80, 1));
      EXPECT_EQ(countsOf(program, 2, ElementType::Float32, 80, replicas),
                withoutTied);
    }
  }
}

} // namespace
} // namespace chimera::runtime
