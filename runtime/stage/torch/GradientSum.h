//===- GradientSum.h - The gradient of one parameter ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_GRADIENTSUM_H
#define CHIMERA_RUNTIME_STAGE_TORCH_GRADIENTSUM_H

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace chimera::runtime {

/// A product of matrices as elements of `type`, that of theirs or a wider one,
/// in which it is then summed.
inline at::Tensor productAs(at::ScalarType type, const at::Tensor &a,
                            const at::Tensor &b) {
  if (a.scalar_type() == type)
    return a.mm(b);
  // The host's kernels have one type only.
  return a.is_cuda() ? at::mm(a, b, type) : a.to(type).mm(b.to(type));
}

/// A sum of gradients in the caller's memory. What is added to it may have a
/// narrower type than it.
struct GradientSum {
  at::Tensor gradient;
  /// Whether there is something in it to add to; else it is written.
  bool hasBegun;

  void add(const at::Tensor &value) {
    if (hasBegun)
      gradient.add_(value);
    else
      gradient.copy_(value);
    hasBegun = true;
  }
  /// Adds the rows of `values`.
  void addRows(const at::Tensor &values) {
    add(values.sum(0, /*keepdim=*/false, gradient.scalar_type()));
  }
  /// Adds a product of matrices.
  void addProduct(const at::Tensor &a, const at::Tensor &b) {
    const int beta = hasBegun ? 1 : 0;
    const at::ScalarType type = gradient.scalar_type();
    if (a.scalar_type() == type)
      gradient.addmm_(a, b, beta);
    else if (a.is_cuda())
      at::addmm_out(gradient, gradient, a, b, type, beta);
    else
      gradient.addmm_(a.to(type), b.to(type), beta);
    hasBegun = true;
  }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_GRADIENTSUM_H
