//===- FuzzTest.cpp - Damaged programs never crash ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// verifyProgram and dumpJson may get programs from untrusted files. With
// sanitizers, these tests show that no change of a field makes the two
// functions misbehave.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/File.h"
#include "runtime/proof/Verify.h"
#include "test/runtime/program/SamplePrograms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace chimera::program {
namespace {

/// A random value, which is often a boundary value.
uint32_t edge(std::mt19937 &random) {
  switch (random() % 4) {
  case 0:
    return random();
  case 1:
    return UINT32_MAX - random() % 3;
  default:
    return random() % 12;
  }
}

template <typename T> T &any(std::vector<T> &list, std::mt19937 &random) {
  return list[random() % list.size()];
}

/// Overwrites a random byte of a struct.
template <typename T> void scratch(T &value, std::mt19937 &random) {
  auto byte = static_cast<unsigned char>(edge(random));
  std::memcpy(reinterpret_cast<unsigned char *>(&value) + random() % sizeof(T),
              &byte, 1);
}

void damage(ProgramT &program, std::mt19937 &random) {
  WorkerT &worker = *any(program.workers, random);
  switch (random() % 14) {
  case 0:
    return scratch(any(worker.buffers, random), random);
  case 1:
    return scratch(any(worker.states, random), random);
  case 2:
    any(worker.operands, random) = edge(random);
    return;
  case 3:
    any(program.pipelines[0]->workers, random) = edge(random);
    return;
  case 4:
    return scratch(
        any(any(program.communicators, random)->contributions, random), random);
  case 5:
    (random() % 2 ? worker.body_begin : worker.body_end) = edge(random);
    return;
  case 6:
    return scratch(any(program.stages, random), random);
  case 7:
    program.pipelines[0]->backward_parts = edge(random);
    return;
  case 8:
    program.pipelines[0]->forwards.resize(random() % 3 + 1, edge(random));
    return;
  default:
    return scratch(any(worker.instructions, random), random);
  }
}

TEST(VerifyFuzz, DamagedFieldsNeverCrash) {
  std::mt19937 random(20240607);
  const ProgramT original = samplePipeline({.workers = 4,
                                            .microBatches = 4,
                                            .bidirectional = true,
                                            .splitBackward = true});
  const ProgramT ranges =
      samplePipeline({.workers = 3,
                      .microBatches = 5,
                      .doubledForwards = true,
                      .backwardParts = 2,
                      .recompute = SampleOptions::Recompute::AllButFirst});
  size_t refused = 0;
  constexpr size_t kRounds = 5000;
  for (size_t round = 0; round < kRounds; ++round) {
    ProgramT program = round % 2 ? ranges : original;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes)
      damage(program, random);
    std::vector<Violation> violations = verifyProgram(program);
    ASSERT_LE(violations.size(), 20u);
    for (const Violation &violation : violations)
      ASSERT_FALSE(violation.message.empty());
    refused += !violations.empty();
    if (round % 50 == 0) {
      EXPECT_FALSE(dumpJson(program).empty());
    }
  }
  // Only changes of unused label fields and of costs are harmless. So most
  // changed programs must be refused.
  EXPECT_GT(refused, kRounds / 2);
}

TEST(VerifyFuzz, DamagedBytesWithAValidChecksumNeverCrash) {
  std::mt19937 random(42);
  const std::vector<std::byte> original =
      serialize(samplePipeline({.workers = 2, .microBatches = 2}));
  size_t parsed = 0;
  for (size_t round = 0; round < 5000; ++round) {
    std::vector<std::byte> bytes = original;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[32 + random() % (bytes.size() - 32)] = std::byte(edge(random));
    uint64_t sum = checksum(std::span(bytes).subspan(32));
    std::memcpy(bytes.data() + 24, &sum, sizeof(sum));
    std::string error;
    std::optional<ProgramT> program = deserialize(bytes, error);
    ASSERT_TRUE(program || !error.empty());
    if (!program)
      continue;
    ++parsed;
    ASSERT_LE(verifyProgram(*program).size(), 20u);
  }
  EXPECT_GT(parsed, 100u);
}

} // namespace
} // namespace chimera::program
