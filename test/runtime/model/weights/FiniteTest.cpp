//===- FiniteTest.cpp - Weights that stay finite --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/weights/Finite.h"
#include "test/runtime/model/SmallModel.h"

#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <limits>

namespace chimera::runtime {
namespace {

using namespace test;

template <typename T> std::vector<T> notFinite() {
  using Limits = std::numeric_limits<T>;
  return {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
          -Limits::signaling_NaN()};
}

template <typename T> void expectFound(program::DataType type) {
  using Limits = std::numeric_limits<T>;
  // 37 values exceed a vector register. 2^18 values exceed one thread's share.
  for (size_t count : {size_t{0}, size_t{1}, size_t{37}, size_t{1} << 18}) {
    std::vector<T> values(count, Limits::max());
    for (size_t i = 0; i < count; i += 3)
      values[i] = i % 2 ? -Limits::denorm_min() : Limits::lowest();
    EXPECT_TRUE(areFinite(type, bytesOf(values))) << count;
    for (T bad : notFinite<T>())
      for (size_t at : {size_t{0}, count / 2, count - 1}) {
        if (count == 0)
          continue;
        const T before = std::exchange(values[at], bad);
        EXPECT_FALSE(areFinite(type, bytesOf(values))) << count << " " << at;
        values[at] = before;
      }
  }
}

TEST(Finite, FindsEveryNonFiniteElement) {
  setThreads(3);
  expectFound<float>(program::DataType::Float32);
  expectFound<double>(program::DataType::Float64);
  expectFound<c10::BFloat16>(program::DataType::BFloat16);
  setThreads(1);
}

/// Checks optimizerStep with a flag. If a gradient sum is not finite, the step
/// sets the flag and changes nothing.
template <typename T> void expectHalts(const program::ProgramT &program) {
  const std::unique_ptr<Stage> stage = makeGraphStage(program, 0);
  const auto elements = program::gradientBytes(program.stages[0]) / sizeof(T);
  std::vector<T> gradient(elements, T(0.5));
  std::vector<T> weights(program.stages[0].weights_bytes() / sizeof(T));
  std::vector<std::byte> state(program.stages[0].optimizer_bytes());
  int32_t flag = 0;
  auto step = [&](uint64_t number) {
    stage->optimizerStep({number, 1e-3, 0.25}, bytesOf(gradient),
                         bytesOf(weights), state,
                         std::as_writable_bytes(std::span(&flag, 1)));
  };
  stage->initialize(bytesOf(weights), state);
  // If all sums are finite, the update is the same as without a flag.
  std::vector<T> expected = weights;
  std::vector<std::byte> stateExpected = state;
  stage->optimizerStep({0, 1e-3, 0.25}, bytesOf(gradient), bytesOf(expected),
                       stateExpected);
  step(0);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(weights, expected);
  EXPECT_EQ(state, stateExpected);
  for (T bad : notFinite<T>())
    for (size_t at : {size_t{0}, elements - 1}) {
      flag = 0;
      gradient[at] = bad;
      step(1);
      EXPECT_EQ(flag, 1);
      gradient[at] = T(0.5);
      step(2); // the flag is set, so nothing changes
      EXPECT_EQ(flag, 1);
      EXPECT_EQ(weights, expected);
      EXPECT_EQ(state, stateExpected);
    }
  flag = 0;
  step(1);
  EXPECT_NE(weights, expected);
}

TEST(Finite, UpdatesStopAtNonFiniteGradients) {
  for (const char *optimizer : {"adamw", "muon", "sgd"}) {
    auto programOf = [&](program::DataType type) {
      program::ProgramT program = smallProgram({.type = type}, {2, 2});
      setOptimizer(program, optimizer);
      return program;
    };
    expectHalts<float>(programOf(program::DataType::Float32));
    expectHalts<double>(programOf(program::DataType::Float64));
    expectHalts<c10::BFloat16>(programOf(program::DataType::BFloat16));
  }
}

} // namespace
} // namespace chimera::runtime
