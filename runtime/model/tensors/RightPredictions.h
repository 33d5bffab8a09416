//===- RightPredictions.h - Counts right predictions ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_RIGHTPREDICTIONS_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_RIGHTPREDICTIONS_H

#include <ATen/ATen.h>

#include <limits>
#include <optional>

namespace chimera::runtime {

/// The number of `labels` [...] whose class has the largest of the `logits`
/// [..., classes], as one float64 on their device. Labels below 0 and the label
/// `ignored` are never right. Not a number if `logits` has another shape.
inline at::Tensor countRight(const at::Tensor &logits, const at::Tensor &labels,
                             std::optional<int64_t> ignored = std::nullopt) {
  if (logits.dim() != labels.dim() + 1 ||
      logits.sizes().slice(0, static_cast<size_t>(labels.dim())) !=
          labels.sizes())
    return at::full({}, std::numeric_limits<double>::quiet_NaN(),
                    logits.options().dtype(at::kDouble));
  at::Tensor areRight = logits.argmax(-1).eq(labels);
  if (ignored)
    areRight.logical_and_(labels.ne(*ignored));
  return areRight.sum().to(at::kDouble);
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_RIGHTPREDICTIONS_H
