//===- AdamW.cpp - The optimizer on flat memory ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/AdamW.h"

#include "runtime/system/Ranges.h"
#include "runtime/system/VectorWidths.h"

#include <cmath>

namespace chimera::runtime {
namespace {

/// Elements that are worth another thread.
constexpr int64_t kGrain = 1 << 15;

/// What is the same for all elements.
template <typename T> struct Factors {
  T scale, keep, new1, old2, new2, stepSize, perRoot2, epsilon;
};

template <typename T>
[[gnu::always_inline]] inline void
updateRange(const Factors<T> &f, int64_t begin, int64_t end,
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

CHIMERA_VECTOR_WIDTHS void update(const Factors<float> &f, int64_t begin,
                                  int64_t end, const float *gradientSum,
                                  float *weights, float *average,
                                  float *averageOfSquares) {
  updateRange(f, begin, end, gradientSum, weights, average, averageOfSquares);
}

CHIMERA_VECTOR_WIDTHS void update(const Factors<double> &f, int64_t begin,
                                  int64_t end, const double *gradientSum,
                                  double *weights, double *average,
                                  double *averageOfSquares) {
  updateRange(f, begin, end, gradientSum, weights, average, averageOfSquares);
}

} // namespace

template <typename T>
void adamWStep(const program::OptimizerT &optimizer, uint64_t step,
               double scale, bool decay, int64_t elements, const T *gradientSum,
               T *weights, T *average, T *averageOfSquares) {
  // Scalars are computed in double and rounded once, as PyTorch does.
  const double count = static_cast<double>(step) + 1;
  const double correction1 = 1 - std::pow(optimizer.beta1, count);
  const double correction2 = 1 - std::pow(optimizer.beta2, count);
  Factors<T> factors;
  factors.scale = static_cast<T>(scale);
  factors.keep = static_cast<T>(
      decay ? 1 - optimizer.learning_rate * optimizer.weight_decay : 1);
  factors.new1 = static_cast<T>(1 - optimizer.beta1);
  factors.old2 = static_cast<T>(optimizer.beta2);
  factors.new2 = static_cast<T>(1 - optimizer.beta2);
  factors.stepSize = static_cast<T>(optimizer.learning_rate / correction1);
  factors.perRoot2 = static_cast<T>(1 / std::sqrt(correction2));
  factors.epsilon = static_cast<T>(optimizer.epsilon);
  inRanges(elements, kGrain, [&](int64_t begin, int64_t end) {
    update(factors, begin, end, gradientSum, weights, average,
           averageOfSquares);
  });
}

template void adamWStep<float>(const program::OptimizerT &, uint64_t, double,
                               bool, int64_t, const float *, float *, float *,
                               float *);
template void adamWStep<double>(const program::OptimizerT &, uint64_t, double,
                                bool, int64_t, const double *, double *,
                                double *, double *);

} // namespace chimera::runtime
