//===- GradientSum.h - The gradient sum of one parameter --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_GRADIENTSUM_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_GRADIENTSUM_H

#include "runtime/model/tensors/Products.h"

namespace chimera::runtime {

/// The sum of a parameter's gradients, in the caller's memory. The values that
/// are added may have a narrower type than the sum.
struct GradientSum {
  at::Tensor gradient;
  /// If true, the next value is added to `gradient`. If false, the next value
  /// overwrites `gradient`.
  bool hasBegun;

  void add(const at::Tensor &value) {
    if (hasBegun)
      gradient.add_(value);
    else
      gradient.copy_(value);
    hasBegun = true;
  }
  /// Adds the sum of the rows of `values`.
  void addRows(const at::Tensor &values) {
    add(values.sum(0, /*keepdim=*/false, gradient.scalar_type()));
  }
  /// Adds the matrix product of `a` and `b`.
  void addProduct(const at::Tensor &a, const at::Tensor &b) {
    runtime::addProduct(gradient, hasBegun, a, b);
    hasBegun = true;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_GRADIENTSUM_H
