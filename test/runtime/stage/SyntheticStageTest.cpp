//===- SyntheticStageTest.cpp - Stages that only take time ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/SyntheticStage.h"

#include "test/runtime/program/SamplePrograms.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace chimera;
using namespace chimera::runtime;

namespace {
// In samples a forward costs 1, a backward 2, each of its halves and a
// recompute 1.
TEST(SyntheticStage, TakesItsCostsInTime) {
  auto stage = makeSyntheticStages(20e6)(program::samplePipeline(), 1);
  auto timed = [](auto action) {
    auto begin = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  auto expectTime = [](double seconds, double expected) {
    EXPECT_GE(seconds, expected);
    EXPECT_LT(seconds, expected + 0.1); // a loaded machine
  };
  expectTime(timed([&] { stage->forward({}, {}, {}, {}, {}); }), 0.02);
  expectTime(timed([&] { stage->backward({}, nullptr, {}, {}, {}, {}); }),
             0.04);
  expectTime(timed([&] { stage->inputGradient({}, nullptr, {}, {}, {}); }),
             0.02);
  expectTime(timed([&] { stage->weightGradient({}, nullptr, {}, {}); }), 0.02);
  expectTime(timed([&] { stage->forward({}, {}, {}, {}, {}, Wanted::Stash); }),
             0.02);
}

// Three units in two parts are one and two; an update takes its own.
TEST(SyntheticStage, APartTakesItsShareOfTheUnits) {
  program::ProgramT program = program::samplePipeline();
  program.stages[1] = program::Stage(1, 1, 3, 2, 1, 1, 5, 2, 0, 0, 0, 0, 0, 0);
  auto stage = makeSyntheticStages(100e6)(program, 1);
  auto timed = [&](uint32_t part, uint32_t parts, Wanted wanted) {
    auto begin = std::chrono::steady_clock::now();
    stage->forward({0, 0, part, parts}, {}, {}, {}, {}, wanted);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  auto expectUnits = [](double seconds, double units) {
    EXPECT_GE(seconds, 0.1 * units);
    EXPECT_LT(seconds, 0.1 * (units + 1)); // less than one more
  };
  expectUnits(timed(0, 2, Wanted::Both), 1);
  expectUnits(timed(1, 2, Wanted::Output), 2);
  expectUnits(timed(0, 2, Wanted::Stash), 2);
  expectUnits(timed(1, 2, Wanted::Stash), 3);
  auto begin = std::chrono::steady_clock::now();
  stage->optimizerStep(0, 1, {}, {}, {});
  expectUnits(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count(),
      2);
}

TEST(SyntheticStage, WritesOnlyTheLoss) {
  program::ProgramT program = program::samplePipeline();
  std::vector<std::byte> output(8, std::byte(7));
  makeSyntheticStages(0)(program, 0)->forward({}, {}, {}, {}, output);
  EXPECT_EQ(output, std::vector<std::byte>(8, std::byte(7)));
  makeSyntheticStages(0)(program, 3)->forward({}, {}, {}, {}, output);
  EXPECT_EQ(output, std::vector<std::byte>(8));
}
} // namespace
