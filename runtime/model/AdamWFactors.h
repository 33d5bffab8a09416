//===- AdamWFactors.h - The constants of an AdamW update --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AdamW (Loshchilov, Hutter, ICLR 2019) as torch.optim.AdamW computes it. All
// arithmetic is in T: the type of the weights, or float32 for weights of
// bfloat16. The update of each element is:
//
//   gradient = scale * gradientSum
//   average += new1 * (gradient - average)
//   averageOfSquares = old2 * averageOfSquares + new2 * gradient * gradient
//   weight = keep * weight
//       - stepSize * average / (sqrt(averageOfSquares) * perRoot2 + epsilon)
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_ADAMWFACTORS_H
#define CHIMERA_RUNTIME_MODEL_ADAMWFACTORS_H

#include "runtime/model/Stage.h"

#include <cmath>

namespace chimera::runtime {

template <typename T> struct AdamWFactors {
  T scale, keep, new1, old2, new2, stepSize, perRoot2, epsilon;
};

/// The factors of an update. `decay` says whether weight decay applies to the
/// weights. Like PyTorch, this function computes the factors in double and
/// rounds each of them once.
template <typename T>
AdamWFactors<T> adamWFactors(const program::OptimizerT &optimizer,
                             const Update &update, bool decay) {
  const double count = static_cast<double>(update.number) + 1;
  const double correction1 = 1 - std::pow(optimizer.beta1, count);
  const double correction2 = 1 - std::pow(optimizer.beta2, count);
  AdamWFactors<T> factors;
  factors.scale = static_cast<T>(update.scale);
  factors.keep = static_cast<T>(
      decay ? 1 - update.learningRate * optimizer.weight_decay : 1);
  factors.new1 = static_cast<T>(1 - optimizer.beta1);
  factors.old2 = static_cast<T>(optimizer.beta2);
  factors.new2 = static_cast<T>(1 - optimizer.beta2);
  factors.stepSize = static_cast<T>(update.learningRate / correction1);
  factors.perRoot2 = static_cast<T>(1 / std::sqrt(correction2));
  factors.epsilon = static_cast<T>(optimizer.epsilon);
  return factors;
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_ADAMWFACTORS_H
