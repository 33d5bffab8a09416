//===- AdamW.cpp - AdamW on flat memory -----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/AdamW.h"

#include "runtime/model/AdamWFactors.h"
#include "runtime/system/ParallelFor.h"
#include "runtime/system/VectorWidths.h"

#include <cmath>

namespace chimera::runtime {
namespace {

/// The minimum number of elements per thread.
constexpr int64_t kGrain = 1 << 15;

template <typename T>
[[gnu::always_inline]] inline void
updateRange(const AdamWFactors<T> &f, int64_t begin, int64_t end,
            const T *__restrict gradientSum, T *__restrict weights,
            T *__restrict average, T *__restrict averageOfSquares) {
  for (int64_t i = begin; i < end; ++i) {
    const T gradient = f.scale * gradientSum[i];
    const T mean = average[i] + f.new1 * (gradient - average[i]);
    const T square =
        f.old2 * averageOfSquares[i] + f.new2 * gradient * gradient;
    average[i] = mean;
    averageOfSquares[i] = square;
    weights[i] =
        f.keep * weights[i] -
        f.stepSize * mean / (std::sqrt(square) * f.perRoot2 + f.epsilon);
  }
}

CHIMERA_FOR_EACH_SIMD_WIDTH void update(const AdamWFactors<float> &f,
                                        int64_t begin, int64_t end,
                                        const float *gradientSum,
                                        float *weights, float *average,
                                        float *averageOfSquares) {
  updateRange(f, begin, end, gradientSum, weights, average, averageOfSquares);
}

CHIMERA_FOR_EACH_SIMD_WIDTH void update(const AdamWFactors<double> &f,
                                        int64_t begin, int64_t end,
                                        const double *gradientSum,
                                        double *weights, double *average,
                                        double *averageOfSquares) {
  updateRange(f, begin, end, gradientSum, weights, average, averageOfSquares);
}

} // namespace

template <typename T>
void adamWStep(const program::OptimizerT &optimizer, const Update &numbers,
               bool decay, int64_t elements, const T *gradientSum, T *weights,
               T *average, T *averageOfSquares) {
  const AdamWFactors<T> factors = adamWFactors<T>(optimizer, numbers, decay);
  parallelFor(elements, kGrain, [&](int64_t begin, int64_t end) {
    update(factors, begin, end, gradientSum, weights, average,
           averageOfSquares);
  });
}

template void adamWStep<float>(const program::OptimizerT &, const Update &,
                               bool, int64_t, const float *, float *, float *,
                               float *);
template void adamWStep<double>(const program::OptimizerT &, const Update &,
                                bool, int64_t, const double *, double *,
                                double *, double *);

} // namespace chimera::runtime
