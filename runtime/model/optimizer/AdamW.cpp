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

template <typename Number>
[[gnu::always_inline]] inline void
updateRange(const AdamWFactors<Arithmetic<Number>> &f, int64_t begin,
            int64_t end, const Number *__restrict gradientSum,
            Number *__restrict weights, Number *__restrict average,
            Number *__restrict averageOfSquares) {
  using T = Arithmetic<Number>;
  for (int64_t i = begin; i < end; ++i) {
    const T gradient = f.scale * T(gradientSum[i]), before = average[i];
    const T mean = before + f.new1 * (gradient - before);
    const T square =
        f.old2 * T(averageOfSquares[i]) + f.new2 * gradient * gradient;
    average[i] = Number(mean);
    averageOfSquares[i] = Number(square);
    weights[i] = Number(f.keep * T(weights[i]) -
                        f.stepSize * mean /
                            (std::sqrt(square) * f.perRoot2 + f.epsilon));
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

CHIMERA_FOR_EACH_SIMD_WIDTH void update(const AdamWFactors<float> &f,
                                        int64_t begin, int64_t end,
                                        const BFloat16 *gradientSum,
                                        BFloat16 *weights, BFloat16 *average,
                                        BFloat16 *averageOfSquares) {
  updateRange(f, begin, end, gradientSum, weights, average, averageOfSquares);
}

} // namespace

template <typename T>
void adamWStep(const program::OptimizerT &optimizer, const Update &numbers,
               bool decay, int64_t elements, const T *gradientSum, T *weights,
               T *average, T *averageOfSquares) {
  const auto factors = adamWFactors<Arithmetic<T>>(optimizer, numbers, decay);
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
template void adamWStep<BFloat16>(const program::OptimizerT &, const Update &,
                                  bool, int64_t, const BFloat16 *, BFloat16 *,
                                  BFloat16 *, BFloat16 *);

} // namespace chimera::runtime
