//===- SyntheticStageTest.cpp - Stages that only take time ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/SyntheticStage.h"

#include "test/runtime/program/SamplePrograms.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <limits>

using namespace chimera;
using namespace chimera::runtime;

namespace {
/// The seconds that `action` takes. On a busy machine a sleep may end late. So
/// this function repeats the action until one call is at most 0.05 s late, but
/// not for ever. Returns the minimum.
template <typename Action>
double leastSeconds(const Action &action, double expected) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 500 && least > expected + 0.05; ++i) {
    auto begin = std::chrono::steady_clock::now();
    action();
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  return least;
}

// In samples a forward costs 1 unit, a backward 2 units, and an input gradient,
// a weight gradient and a recompute 1 unit each. A unit takes 100 ms here.
TEST(SyntheticStage, TakesItsCostsInTime) {
  auto stage = makeSyntheticStages(100e6)(program::samplePipeline(), 1);
  auto expectTime = [](auto action, double seconds) {
    double least = leastSeconds(action, seconds);
    EXPECT_GE(least, seconds);
    EXPECT_LT(least, seconds + 0.1); // less than one unit more
  };
  expectTime([&] { stage->forward({}, {}, {}, {}, {}); }, 0.1);
  expectTime([&] { stage->backward({}, nullptr, {}, {}, {}, {}); }, 0.2);
  expectTime([&] { stage->inputGradient({}, nullptr, {}, {}, {}); }, 0.1);
  expectTime([&] { stage->weightGradient({}, nullptr, {}, {}); }, 0.1);
  expectTime([&] { stage->forward({}, {}, {}, {}, {}, ForwardMode::Stash); },
             0.1);
}

// A forward of three units is divided into two parts: one part takes one unit
// and the other takes two. An update takes the time that the stage states for
// it.
TEST(SyntheticStage, APartTakesItsShareOfTheUnits) {
  program::ProgramT program = program::samplePipeline();
  program.stages[1] = program::Stage(1, 1, 3, 2, 1, 1, 5, 2, 0, 0, 0, 0, 0, 0);
  auto stage = makeSyntheticStages(100e6)(program, 1);
  auto expectUnits = [](auto action, double units) {
    double seconds = leastSeconds(action, 0.1 * units);
    EXPECT_GE(seconds, 0.1 * units);
    EXPECT_LT(seconds, 0.1 * (units + 1)); // less than one more
  };
  auto expectForward = [&](uint32_t part, ForwardMode mode, double units) {
    expectUnits(
        [&] {
          stage->forward({0, 0, part, 2}, {}, {}, {}, {}, mode);
        },
        units);
  };
  expectForward(0, ForwardMode::Both, 1);
  expectForward(1, ForwardMode::Output, 2);
  expectForward(0, ForwardMode::Stash, 2);
  expectForward(1, ForwardMode::Stash, 3);
  expectUnits([&] { stage->optimizerStep({}, {}, {}, {}); }, 2);
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
