//===- DevicePlacementTest.cpp - Stages on a GPU --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Clipping.h"
#include "runtime/random/Philox.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// Kernels of a device whose memory is host memory. They count their calls.
class CountingKernels final : public StageKernels {
public:
  uint32_t masks = 0;
  int64_t updated = 0;

  void computeDropoutMask(double dropped, DropoutKey key, uint64_t first,
                          int64_t count, bool *kept) override {
    ++masks;
    runtime::computeDropoutMask(
        dropped, key.step ? splitMix64(key.word ^ *key.step) : key.word, first,
        count, kept);
  }
  void drop(ElementType type, double dropped, DropoutKey key, uint64_t first,
            int64_t count, const void *input, double scale,
            void *result) override {
    std::unique_ptr<bool[]> kept(new bool[static_cast<size_t>(count)]);
    computeDropoutMask(dropped, key, first, count, kept.get());
    const auto apply = [&]<typename T>(const T *from, T *to) {
      for (int64_t i = 0; i < count; ++i)
        to[i] = from[i] * static_cast<T>(kept[static_cast<size_t>(i)]) *
                static_cast<T>(scale);
    };
    if (type == ElementType::Float64)
      apply(static_cast<const double *>(input), static_cast<double *>(result));
    else if (type == ElementType::Float32)
      apply(static_cast<const float *>(input), static_cast<float *>(result));
    else
      FAIL() << "expected no activations in bfloat16";
  }
  void adamW(const AdamWFactors<float> &factors,
             std::span<const DecayRange> ranges, const float *gradientSum,
             float *weights, float *average, float *averageOfSquares,
             const int32_t *stops, const double *scale) override {
    update(factors, ranges, gradientSum, weights, average, averageOfSquares,
           stops, scale);
  }
  void adamW(const AdamWFactors<double> &factors,
             std::span<const DecayRange> ranges, const double *gradientSum,
             double *weights, double *average, double *averageOfSquares,
             const int32_t *stops, const double *scale) override {
    update(factors, ranges, gradientSum, weights, average, averageOfSquares,
           stops, scale);
  }
  void adamW(const AdamWFactors<float> &, std::span<const DecayRange>,
             const BFloat16 *, BFloat16 *, BFloat16 *, BFloat16 *,
             const int32_t *, const double *) override {
    FAIL() << "expected no parameters in bfloat16";
  }

private:
  template <typename T>
  void update(const AdamWFactors<T> &f, std::span<const DecayRange> ranges,
              const T *gradientSum, T *weights, T *average, T *averageOfSquares,
              const int32_t *stops, const double *clippedScale) {
    updated += ranges.back().end;
    if (stops && *stops)
      return;
    const T scale = clippedScale ? static_cast<T>(*clippedScale) : f.scale;
    for (int64_t i = 0; i < ranges.back().end; ++i) {
      while (i == ranges.front().end)
        ranges = ranges.subspan(1);
      const T gradient = scale * gradientSum[i];
      average[i] += f.new1 * (gradient - average[i]);
      averageOfSquares[i] =
          f.old2 * averageOfSquares[i] + f.new2 * gradient * gradient;
      weights[i] =
          (ranges.front().decays ? f.keep : 1) * weights[i] -
          f.stepSize * average[i] /
              (std::sqrt(averageOfSquares[i]) * f.perRoot2 + f.epsilon);
    }
  }
};

/// `byKernel` is the number of elements that the kernel must update in a step.
template <typename T>
void expectTheHostsTraining(program::DataType type, const char *optimizer,
                            int64_t byKernel) {
  program::ProgramT program =
      smallProgram({.dropout = 0.3, .type = type}, {2, 2});
  setOptimizer(program, optimizer);
  CountingKernels kernels;
  Line<T> host(program), device(program, {.kernels = &kernels});
  for (uint64_t step = 0; step < 3; ++step)
    for (Line<T> *line : {&host, &device}) {
      line->forward({step, 0});
      line->backward({step, 0}, WgradMode::Overwrite);
      line->step(step, 0.5);
    }
  EXPECT_EQ(device.loss, host.loss);
  EXPECT_EQ(device.whole(&Line<T>::Part::gradient),
            host.whole(&Line<T>::Part::gradient));
  EXPECT_LT(largestDifference(device.whole(&Line<T>::Part::weights),
                              host.whole(&Line<T>::Part::weights)),
            1e-6);
  // There are three steps. In each step, the forward and the backward both draw
  // for one dropout of the embedding and, for each of two blocks, for two
  // dropouts of the residual branches and one of the attention of each of two
  // samples.
  EXPECT_EQ(kernels.masks, 3u * 2 * (1 + 2 * (2 + 2)));
  EXPECT_EQ(kernels.updated, 3 * byKernel);
}

TEST(PlaceTest, kernelsAreTheDevices) {
  const program::ProgramT program = smallProgram({}, {4});
  const int64_t all = program::parameterCount(*program.model, 0, 4);
  // Muon updates the matrices of two blocks of width 8.
  for (const auto &[optimizer, byKernel] :
       {std::pair("adamw", all), std::pair("muon", all - 2 * 12 * 8 * 8)}) {
    expectTheHostsTraining<float>(program::DataType::Float32, optimizer,
                                  byKernel);
    expectTheHostsTraining<double>(program::DataType::Float64, optimizer,
                                   byKernel);
  }
}

/// The training of a line of stages with every optimizer, as on a GPU and on
/// the host. A gradient of one step is `bad`, if there is a step with that
/// number. `change` sets further numbers of each update.
template <typename T>
void expectTheHostsUpdates(const std::function<void(Update &)> &change,
                           std::optional<uint64_t> badStep = {}) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const char *optimizer : {"adamw", "sgd", "sgd-momentum", "muon"}) {
    SCOPED_TRACE(optimizer);
    program::ProgramT program =
        smallProgram({.type = sizeof(T) == 4 ? program::DataType::Float32
                                             : program::DataType::Float64},
                     {2, 2});
    setOptimizer(program, optimizer);
    CountingKernels kernels;
    Line<T> host(program), device(program, {.kernels = &kernels});
    std::array<int32_t, 2> flags{};
    for (uint64_t step = 0; step < 4; ++step)
      for (Line<T> *line : {&host, &device}) {
        line->forward({step, 0});
        line->backward({step, 0}, WgradMode::Overwrite);
        if (step == badStep)
          line->parts[0].gradient[3] = static_cast<T>(kNaN);
        const std::vector<T> before = line->whole(&Line<T>::Part::gradient);
        double square = 0;
        for (auto &part : line->parts) {
          double own = 0;
          part.stage->squaredNorm(bytesOf(part.gradient),
                                  std::as_writable_bytes(std::span(&own, 1)));
          square += own;
        }
        if (step != badStep) {
          EXPECT_EQ(line->whole(&Line<T>::Part::gradient), before);
        }
        Update update{.number = step, .learningRate = 1e-2, .scale = 0.5};
        change(update);
        const bool clips = update.clipNorm > 0;
        for (auto &part : line->parts)
          part.stage->optimizerStep(
              update, bytesOf(part.gradient), bytesOf(part.weights),
              bytesOf(part.state),
              std::as_writable_bytes(std::span(&flags[line == &device], 1)),
              clips ? std::as_bytes(std::span(&square, 1)) : ConstBytes());
      }
    EXPECT_EQ(flags[0], flags[1]);
    EXPECT_EQ(flags[0] != 0, badStep.has_value());
    EXPECT_LT(largestDifference(device.whole(&Line<T>::Part::weights),
                                host.whole(&Line<T>::Part::weights)),
              sizeof(T) == 4 ? 1e-6 : 1e-14);
  }
}

TEST(PlaceTest, clipsLikeTheHost) {
  const auto clip = [](Update &update) { update.clipNorm = 0.1; };
  expectTheHostsUpdates<float>(clip);
  expectTheHostsUpdates<double>(clip);
}

TEST(PlaceTest, haltsLikeTheHost) {
  const auto nothing = [](Update &) {};
  expectTheHostsUpdates<float>(nothing);
  expectTheHostsUpdates<double>(nothing);
  expectTheHostsUpdates<float>(nothing, 2);
  expectTheHostsUpdates<double>(nothing, 2);
}

TEST(PlaceTest, leavesOutUpdatesLikeTheHost) {
  const auto skip = [](Update &update) {
    update.clipNorm = 0.1;
    update.skipNonFinite = 3;
  };
  expectTheHostsUpdates<double>(skip, 1);
}

TEST(PlaceTest, aWrongIndexIsFoundWithoutWaiting) {
  const program::ProgramT program = smallProgram({}, {2, 2});
  const int64_t vocabulary = Sizes{}.vocabulary;
  CountingKernels kernels;
  for (const bool ofLabels : {false, true})
    for (const int64_t wrong : {int64_t{-1}, vocabulary, vocabulary + 5}) {
      Line<double> line(program, {.kernels = &kernels});
      std::array<int32_t, 2> flags{};
      for (size_t s = 0; s < 2; ++s) {
        ASSERT_TRUE(line.parts[s].stage->needsErrorFlag());
        line.parts[s].stage->setErrorFlag(
            std::as_writable_bytes(std::span(&flags[s], 1)));
      }
      line.forward({0, 0});
      line.backward({0, 0});
      EXPECT_EQ(flags[0], 0);
      EXPECT_EQ(flags[1], 0);
      (ofLabels ? line.labels : line.tokens)[3] = wrong;
      line.forward({1, 0});
      line.backward({1, 0});
      EXPECT_TRUE(std::isfinite(line.loss));
      // Layer 0 is the embedding, and layer 3 is the head.
      EXPECT_EQ(flags[0], ofLabels ? 0 : 1);
      EXPECT_EQ(flags[1], ofLabels ? 4 : 0);
      const size_t stage = ofLabels ? 1 : 0;
      EXPECT_EQ(line.parts[stage]
                    .stage->errorMessage(flags[stage])
                    .find(ofLabels ? "layer 3" : "layer 0"),
                0u);
    }
}

TEST(PlaceTest, withoutAFlagAWrongIndexIsThrown) {
  const program::ProgramT program = smallProgram({}, {4});
  CountingKernels kernels;
  Line<double> line(program, {.kernels = &kernels});
  line.tokens[0] = Sizes{}.vocabulary;
  EXPECT_THROW(line.forward({0, 0}), std::runtime_error);
  EXPECT_FALSE(makeGraphStage(program, 0)->needsErrorFlag());
}

TEST(PlaceTest, aGpuNeedsKernels) {
  const program::ProgramT program = smallProgram({}, {4});
  EXPECT_THROW(makeGraphStage(program, 0, nullptr, {.isCuda = true}),
               std::invalid_argument);
}
} // namespace
