//===- DevicePlacementTest.cpp - Stages that use a device's kernels -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/TransformerStage.h"
#include "runtime/model/optimizer/AdamW.h"
#include "runtime/random/Philox.h"
#include "test/runtime/model/SmallModel.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::test;

namespace {
/// Kernels of a device whose memory is host memory. They count their calls.
class CountingKernels final : public StageKernels {
public:
  uint32_t masks = 0;
  int64_t updated = 0;

  void computeDropoutMask(double dropped, uint64_t key, uint64_t first,
                          int64_t count, bool *kept) override {
    ++masks;
    runtime::computeDropoutMask(dropped, key, first, count, kept);
  }
  void adamW(const AdamWFactors<float> &factors,
             std::span<const DecayRange> ranges, const float *gradientSum,
             float *weights, float *average, float *averageOfSquares,
             const int32_t *, const double *) override {
    update(factors, ranges, gradientSum, weights, average, averageOfSquares);
  }
  void adamW(const AdamWFactors<double> &factors,
             std::span<const DecayRange> ranges, const double *gradientSum,
             double *weights, double *average, double *averageOfSquares,
             const int32_t *, const double *) override {
    update(factors, ranges, gradientSum, weights, average, averageOfSquares);
  }

private:
  template <typename T>
  void update(const AdamWFactors<T> &f, std::span<const DecayRange> ranges,
              const T *gradientSum, T *weights, T *average,
              T *averageOfSquares) {
    updated += ranges.back().end;
    for (int64_t i = 0; i < ranges.back().end; ++i) {
      while (i == ranges.front().end)
        ranges = ranges.subspan(1);
      const T gradient = f.scale * gradientSum[i];
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
  // There are three steps. In each step, dropout makes one mask for the
  // embedding. For each of two blocks it makes two masks for the residual
  // branches and, for each of two samples, a mask for the attention, which the
  // backward makes again.
  EXPECT_EQ(kernels.masks, 3u * (1 + 2 * (2 + 2 * 2)));
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

TEST(PlaceTest, aGpuNeedsKernels) {
  EXPECT_THROW(makeTransformerStage(smallProgram({}, {4}), 0, {.isCuda = true}),
               std::invalid_argument);
}
} // namespace
