//===- Products.h - Matrix products -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products with the faster of LibTorch's two libraries on the host.
// LibTorch uses MKL for float32 and float64. On processors that are not
// Intel's, MKL uses only 256-bit vectors. LibTorch uses oneDNN for bfloat16.
// oneDNN compiles kernels for the processor's features. Its float32 kernels are
// twice as fast as MKL's on an AMD processor with AVX-512. So float32 products
// use oneDNN on processors that have AVX-512 and are not Intel's.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_PRODUCTS_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_PRODUCTS_H

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// `a` [M, K] times `b` [K, N]. All functions of this header accept any
/// strides, require operands of one type unless stated otherwise, and must not
/// be called while autograd records a graph.
at::Tensor product(const at::Tensor &a, const at::Tensor &b);

/// Like `product`, but writes to `result` [M, N].
void productTo(at::Tensor &result, const at::Tensor &a, const at::Tensor &b);

/// `x` [M, K] times the transpose of `weight` [N, K], plus `bias` [N] in each
/// row.
at::Tensor productWithBias(const at::Tensor &bias, const at::Tensor &x,
                           const at::Tensor &weight);

/// If `adds` is true, adds the product of `a` and `b` to `sum` [M, N].
/// Otherwise writes the product to `sum`. The product is computed in the type
/// of `sum`. Temporary memory is limited to some rows of `a` and `sum`.
/// Exception: in float64 the whole product is a temporary, as in PyTorch's
/// autograd, so that sums have PyTorch's bits.
void addProduct(at::Tensor &sum, bool adds, const at::Tensor &a,
                const at::Tensor &b);

/// Whether oneDNN computes large float32 products on the host. The default
/// depends on the processor. Benchmarks and tests change it with useOneDnn.
/// False if this LibTorch has no oneDNN.
bool usesOneDnn();
void useOneDnn(bool does);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_PRODUCTS_H
