//===- StageKernels.cpp - What stages need of a GPU -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/cuda/StageKernels.h"

#include "runtime/device/cuda/Device.h"
#include "runtime/stage/Philox.h"

using namespace chimera::runtime;
using cuda::counted;

namespace {
class CudaStageKernels final : public StageKernels {
  void keepElements(double probability, uint64_t key, uint64_t first,
                    int64_t samples, int64_t elements, bool *kept) override {
    cuda::Working on = cuda::working();
    on.kernels.launch(on.kernels.all().KeepElements, on.stream,
                      counted(samples) * ((elements + 3) / 4),
                      counted(keepThreshold(probability)), counted(key),
                      counted(first), counted(samples), counted(elements),
                      kept);
  }

  void adamW(const AdamWFactors<float> &factors, int64_t elements,
             const float *gradientSum, float *weights, float *average,
             float *averageOfSquares) override {
    cuda::Working on = cuda::working();
    on.kernels.launch(on.kernels.all().AdamWFloat, on.stream, counted(elements),
                      factors, counted(elements), gradientSum, weights, average,
                      averageOfSquares);
  }
  void adamW(const AdamWFactors<double> &factors, int64_t elements,
             const double *gradientSum, double *weights, double *average,
             double *averageOfSquares) override {
    cuda::Working on = cuda::working();
    on.kernels.launch(on.kernels.all().AdamWDouble, on.stream,
                      counted(elements), factors, counted(elements),
                      gradientSum, weights, average, averageOfSquares);
  }
};
} // namespace

StageKernels &chimera::runtime::cudaStageKernels() {
  static CudaStageKernels kernels; // has no state
  return kernels;
}
