//===- Clipping.h - Clipping by the norm of all gradients -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formula of torch.nn.utils.clip_grad_norm_ (PyTorch 2.11) for the 2-norm:
// gradients are multiplied by min(1, limit / (norm + 1e-6)). Here a gradient is
// `scale` times a gradient sum, so the norm is `scale` times the root of the
// sum of the squares of the gradient sums.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_CLIPPING_H
#define CHIMERA_RUNTIME_MODEL_CLIPPING_H

#include <algorithm>
#include <cmath>

namespace chimera::runtime {

inline constexpr double kClipEpsilon = 1e-6;

/// The norm of the gradients of a step.
inline double gradientNorm(double squaredNormOfSums, double scale) {
  return std::sqrt(squaredNormOfSums) * scale;
}

/// The factor for the gradient sums of a step: `scale`, or less if the norm is
/// above `limit`. Requires a finite squared norm and a positive limit.
inline double clippedScale(double squaredNormOfSums, double scale,
                           double limit) {
  const double norm = gradientNorm(squaredNormOfSums, scale);
  return scale * std::min(1.0, limit / (norm + kClipEpsilon));
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_CLIPPING_H
