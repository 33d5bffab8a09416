//===- ClippingTest.cpp - Clipping by the norm of all gradients -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Clipping.h"
#include "runtime/model/optimizer/SquaredNorm.h"
#include "runtime/model/optimizer/UpdateTensors.h"
#include "test/runtime/model/SmallModel.h"

#include <ATen/ATen.h>
#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace chimera::runtime {
namespace {

using namespace test;

template <typename T> void expectSumOfSquares(program::DataType type) {
  for (size_t count : {0, 1, 15, 16, 17, 1 << 14, (1 << 14) + 5, 300001}) {
    std::vector<T> values(count);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
      // These numbers are exact in bfloat16 too.
      values[i] = static_cast<T>(static_cast<float>(i % 127) / 8 - 7);
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    // All squares are multiples of 2^-6 with few digits, so every order of
    // summation gives the exact sum.
    EXPECT_EQ(squaredNormOf(type, bytesOf(values)), sum) << count;
  }
}

TEST(SquaredNorm, IsTheSumOfAllSquares) {
  for (int threads : {1, 3}) {
    setThreads(threads);
    expectSumOfSquares<float>(program::DataType::Float32);
    expectSumOfSquares<double>(program::DataType::Float64);
    expectSumOfSquares<c10::BFloat16>(program::DataType::BFloat16);
  }
  setThreads(1);
}

TEST(SquaredNorm, DoesNotDependOnTheNumberOfThreads) {
  std::vector<float> values(1 << 20);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1.0f / static_cast<float>(i + 3);
  setThreads(1);
  const double one = squaredNormOf(program::DataType::Float32, bytesOf(values));
  setThreads(4);
  EXPECT_EQ(squaredNormOf(program::DataType::Float32, bytesOf(values)), one);
  setThreads(1);
}

TEST(SquaredNorm, DoesNotOverflowForFloats) {
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(
      squaredNormOf(program::DataType::Float32, bytesOf(values))));
}

TEST(Clipping, ScalesOnlyNormsAboveTheLimit) {
  EXPECT_EQ(clippedScale(/*squaredNormOfSums=*/16, /*scale=*/0.25, 2), 0.25);
  EXPECT_EQ(clippedScale(16, 0.25, 0.5), 0.25 * (0.5 / (1 + 1e-6)));
  EXPECT_EQ(clippedScale(0, 0.25, 1e-9), 0.25 * (1e-9 / 1e-6));
}

/// One update of a stage with gradients that are all 0.5, of which
/// `squaredNorm` is the squared norm of all stages.
template <typename T> struct Updated {
  std::vector<T> weights;
  int32_t flag = 0;

  Updated(const program::ProgramT &program, Update update,
          std::optional<double> squaredNorm) {
    const std::unique_ptr<Stage> stage = makeGraphStage(program, 0);
    const auto elements = program::gradientBytes(program.stages[0]) / sizeof(T);
    std::vector<T> gradient(elements, T(0.5));
    weights.resize(program.stages[0].weights_bytes() / sizeof(T));
    std::vector<std::byte> state(program.stages[0].optimizer_bytes());
    stage->initialize(bytesOf(weights), state);
    double norm = squaredNorm.value_or(0);
    stage->optimizerStep(update, bytesOf(gradient), bytesOf(weights), state,
                         std::as_writable_bytes(std::span(&flag, 1)),
                         squaredNorm
                             ? ConstBytes(std::as_bytes(std::span(&norm, 1)))
                             : ConstBytes());
  }
};

template <typename T> void expectClipped(const program::ProgramT &program) {
  const Update update = {.number = 0, .learningRate = 1e-3, .scale = 0.25};
  Update clipped = update;
  clipped.clipNorm = 3;
  const double large = 1e4; // norm 25
  Update scaled = update;
  scaled.scale = clippedScale(large, update.scale, clipped.clipNorm);
  EXPECT_EQ((Updated<T>(program, clipped, large).weights),
            (Updated<T>(program, scaled, {}).weights));
  EXPECT_EQ((Updated<T>(program, clipped, 1.0).weights),
            (Updated<T>(program, update, {}).weights));
}

/// Without skipping, a norm that is not finite halts the updates. In both
/// cases nothing changes, although all elements of this stage are finite.
template <typename T>
void expectNothingForBadNorms(const program::ProgramT &program) {
  std::vector<T> initial(program.stages[0].weights_bytes() / sizeof(T));
  std::vector<std::byte> state(program.stages[0].optimizer_bytes());
  makeGraphStage(program, 0)->initialize(bytesOf(initial), state);
  for (double bad : {std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity()})
    for (bool skips : {false, true}) {
      const Updated<T> after(program,
                             {.number = 0,
                              .learningRate = 1e-3,
                              .scale = 0.25,
                              .clipNorm = 1,
                              .skipNonFinite = skips ? 5u : 0u},
                             bad);
      EXPECT_EQ(after.weights, initial);
      EXPECT_EQ(hasHalted(after.flag), !skips);
    }
}

TEST(Clipping, TheFlagCountsUpdatesThatAreLeftOut) {
  for (uint64_t most = 0; most < 5; ++most) {
    int32_t flag = 0;
    for (uint64_t skipped = 0; skipped < most; ++skipped) {
      flag = flagAfterNonFinite(flag, most);
      EXPECT_FALSE(hasHalted(flag));
    }
    EXPECT_TRUE(hasHalted(flagAfterNonFinite(flag, most)));
  }
  // The largest number that an option can give.
  const uint64_t most = 1'000'000'000;
  const auto last = static_cast<int32_t>(2 * most);
  EXPECT_FALSE(hasHalted(flagAfterNonFinite(last - 2, most)));
  EXPECT_TRUE(hasHalted(flagAfterNonFinite(last, most)));
}

TEST(Clipping, ADeviceDecidesLikeTheHost) {
  auto flagOf = [](int32_t value) { return at::full({}, value, at::kInt); };
  for (uint64_t most : {0, 1, 3})
    for (uint32_t pattern = 0; pattern < 64; ++pattern) {
      int32_t onHost = 0;
      const at::Tensor flag = flagOf(0);
      for (int update = 0; update < 6; ++update) {
        const bool isBad = pattern >> update & 1;
        const bool stops = hasHalted(onHost) || isBad;
        if (isBad && !hasHalted(onHost))
          onHost = flagAfterNonFinite(onHost, most);
        EXPECT_EQ(stopsOf(at::full({}, isBad, at::kBool), flag, most)
                          .item<int32_t>() != 0,
                  stops);
        EXPECT_EQ(flag.item<int32_t>(), onHost);
      }
    }
  for (double square : {0.0, 1e-6, 4.0, 1e8})
    for (double limit : {0.1, 3.0})
      EXPECT_DOUBLE_EQ(
          clippedScaleOf(at::full({}, square, at::kDouble), 0.25, limit)
              .item<double>(),
          clippedScale(square, 0.25, limit));
}

TEST(Clipping, IsPartOfEveryOptimizer) {
  for (const char *optimizer : {"adamw", "muon", "sgd"})
    for (auto type : {program::DataType::Float32, program::DataType::Float64}) {
      program::ProgramT program = smallProgram({.type = type}, {2, 2});
      setOptimizer(program, optimizer);
      if (type == program::DataType::Float64) {
        expectClipped<double>(program);
        expectNothingForBadNorms<double>(program);
      } else {
        expectClipped<float>(program);
        expectNothingForBadNorms<float>(program);
      }
    }
}

TEST(Clipping, StageAddsItsSquares) {
  const program::ProgramT program =
      smallProgram({.type = program::DataType::Float32}, {2, 2});
  const std::unique_ptr<Stage> stage = makeGraphStage(program, 0);
  std::vector<float> some(1001, 0.5f);
  double norm = -1;
  stage->squaredNorm(bytesOf(some),
                     std::as_writable_bytes(std::span(&norm, 1)));
  EXPECT_EQ(norm, 1001 * 0.25);
}

} // namespace
} // namespace chimera::runtime
