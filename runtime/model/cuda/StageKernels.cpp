//===- StageKernels.cpp - The stages' own computations on a GPU -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/cuda/StageKernels.h"

#include "runtime/device/cuda/Device.h"
#include "runtime/random/Philox.h"

#include <algorithm>

using namespace chimera::runtime;
using cuda::counted;

namespace {
/// An argument of the AdamW kernels. It must have the layout of struct Runs in
/// Kernels.cu.
struct Runs {
  static constexpr size_t kMost = 256;

  unsigned long long begin;
  unsigned long long end[kMost];
  bool decays[kMost];
  int count;
};

class CudaStageKernels final : public StageKernels {
  void computeDropoutMask(double dropped, DropoutKey key, uint64_t first,
                          int64_t count, bool *kept) override {
    cuda::LaunchContext on = cuda::launchContext();
    on.kernels.launch(on.kernels.all().KeepElements, on.stream,
                      (first % 4 + counted(count) + 3) / 4,
                      counted(smallestKeptDraw(dropped)), counted(key.word),
                      key.step, counted(first), counted(count), kept);
  }

  void drop(ElementType type, double dropped, DropoutKey key, uint64_t first,
            int64_t count, const void *input, double scale,
            void *result) override {
    cuda::LaunchContext on = cuda::launchContext();
    const cuda::Kernels::Loaded &all = on.kernels.all();
    on.kernels.launch(type == ElementType::Float64    ? all.DropDouble
                      : type == ElementType::BFloat16 ? all.DropBFloat16
                                                      : all.DropFloat,
                      on.stream, (first % 4 + counted(count) + 3) / 4,
                      counted(smallestKeptDraw(dropped)), counted(key.word),
                      key.step, counted(first), counted(count), input, scale,
                      result);
  }

  void adamW(const AdamWFactors<float> &factors,
             std::span<const DecayRange> ranges, const float *gradientSum,
             float *weights, float *average, float *averageOfSquares,
             const int32_t *stops, const double *scale) override {
    update(cuda::launchContext().kernels.all().AdamWFloat, factors, ranges,
           gradientSum, weights, average, averageOfSquares, stops, scale);
  }
  void adamW(const AdamWFactors<double> &factors,
             std::span<const DecayRange> ranges, const double *gradientSum,
             double *weights, double *average, double *averageOfSquares,
             const int32_t *stops, const double *scale) override {
    update(cuda::launchContext().kernels.all().AdamWDouble, factors, ranges,
           gradientSum, weights, average, averageOfSquares, stops, scale);
  }
  void adamW(const AdamWFactors<float> &factors,
             std::span<const DecayRange> ranges, const BFloat16 *gradientSum,
             BFloat16 *weights, BFloat16 *average, BFloat16 *averageOfSquares,
             const int32_t *stops, const double *scale) override {
    update(cuda::launchContext().kernels.all().AdamWBFloat16, factors, ranges,
           gradientSum, weights, average, averageOfSquares, stops, scale);
  }

  /// Launches the kernel once for each kMost ranges, since the argument Runs
  /// has no room for more.
  template <typename T, typename... Arrays>
  static void update(cudaKernel_t kernel, const AdamWFactors<T> &factors,
                     std::span<const DecayRange> ranges, Arrays... arrays) {
    cuda::LaunchContext on = cuda::launchContext();
    unsigned long long begin = 0;
    while (!ranges.empty()) {
      Runs some{};
      some.begin = begin;
      for (const DecayRange &range :
           ranges.first(std::min(ranges.size(), Runs::kMost))) {
        some.end[some.count] = begin = counted(range.end);
        some.decays[some.count++] = range.decays;
      }
      on.kernels.launch(kernel, on.stream, begin - some.begin, factors, some,
                        arrays...);
      ranges = ranges.subspan(static_cast<size_t>(some.count));
    }
  }
};
} // namespace

StageKernels &chimera::runtime::cudaStageKernels() {
  static CudaStageKernels kernels; // has no state
  return kernels;
}
