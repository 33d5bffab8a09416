//===- AdamW.cpp - The optimizer on flat memory ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/AdamW.h"

#include <cmath>

namespace chimera::runtime {

template <typename T>
void adamWStep(const program::OptimizerT &optimizer, uint64_t step,
               double scale, bool decay, int64_t elements,
               const T *__restrict gradientSum, T *__restrict weights,
               T *__restrict average, T *__restrict averageOfSquares) {
  // Scalars are computed in double and rounded once, as PyTorch does.
  const double count = static_cast<double>(step) + 1;
  const double correction1 = 1 - std::pow(optimizer.beta1, count);
  const double correction2 = 1 - std::pow(optimizer.beta2, count);
  const T gradientScale = static_cast<T>(scale);
  const T keep = static_cast<T>(
      decay ? 1 - optimizer.learning_rate * optimizer.weight_decay : 1);
  const T new1 = static_cast<T>(1 - optimizer.beta1);
  const T old2 = static_cast<T>(optimizer.beta2);
  const T new2 = static_cast<T>(1 - optimizer.beta2);
  const T stepSize = static_cast<T>(optimizer.learning_rate / correction1);
  const T root2 = static_cast<T>(std::sqrt(correction2));
  const T epsilon = static_cast<T>(optimizer.epsilon);
  for (int64_t i = 0; i < elements; ++i) {
    const T gradient = gradientScale * gradientSum[i];
    const T mean = average[i] + new1 * (gradient - average[i]);
    const T square = old2 * averageOfSquares[i] + new2 * gradient * gradient;
    average[i] = mean;
    averageOfSquares[i] = square;
    weights[i] = keep * weights[i] -
                 stepSize * mean / (std::sqrt(square) / root2 + epsilon);
  }
}

template void adamWStep<float>(const program::OptimizerT &, uint64_t, double,
                               bool, int64_t, const float *, float *, float *,
                               float *);
template void adamWStep<double>(const program::OptimizerT &, uint64_t, double,
                                bool, int64_t, const double *, double *,
                                double *, double *);

} // namespace chimera::runtime
