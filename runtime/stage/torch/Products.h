//===- Products.h - Products of matrices ------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LibTorch has two libraries for them on a host. It takes MKL for float32 and
// float64, whose kernels for processors that are not Intel's use vectors of 256
// bits. oneDNN, which it takes for bfloat16, compiles kernels for what the
// processor has: in float32 they are twice as fast on one of AMD's that has
// AVX-512. So such products go to oneDNN there.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_PRODUCTS_H
#define CHIMERA_RUNTIME_STAGE_TORCH_PRODUCTS_H

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// `a` [M, K] times `b` [K, N]. All of these take any strides, have one type
/// unless they say otherwise, and are for where no graph is made.
at::Tensor product(const at::Tensor &a, const at::Tensor &b);

/// The same in `type`, which may be wider than that of `a` and `b`.
at::Tensor productAs(at::ScalarType type, const at::Tensor &a,
                     const at::Tensor &b);

/// `bias` [N] added to each row of `x` [M, K] times the transpose of `weight`
/// [N, K].
at::Tensor productWithBias(const at::Tensor &bias, const at::Tensor &x,
                           const at::Tensor &weight);

/// `a` times `b` to `sum` [M, N], in its type: added, or written. Takes memory
/// for some rows of `a` and of the sum at a time, not for all; but in float64
/// the product is made and then added, as PyTorch's autograd does, so that sums
/// have its bits.
void addProduct(at::Tensor &sum, bool adds, const at::Tensor &a,
                const at::Tensor &b);

/// Whether oneDNN multiplies large matrices of float32 on the host. It is
/// chosen by the processor; benchmarks and tests choose themselves. False where
/// this LibTorch has no oneDNN.
bool oneDnnMultiplies();
void letOneDnnMultiply(bool does);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PRODUCTS_H
