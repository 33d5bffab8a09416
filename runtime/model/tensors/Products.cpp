//===- Products.cpp - Matrix products -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Products.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <atomic>

namespace chimera::runtime {
namespace {

using at::Tensor;

/// Products with fewer multiplications do not use oneDNN, because its calls
/// have more overhead.
constexpr int64_t kFewest = 1 << 20;

/// addProduct computes blocks of rows. This is the maximum number of elements
/// of a block of `sum`, and of a block of `a`: each needs temporary memory.
constexpr int64_t kProductBlockElements = 1 << 20;

/// oneDNN's product of `x` and the transpose of `weight`. torch.compile uses
/// this operator too. It takes ordinary tensors.
using Linear = Tensor(const Tensor &x, const Tensor &weight,
                      const std::optional<Tensor> &bias,
                      std::string_view function,
                      c10::List<std::optional<at::Scalar>> scalars,
                      std::optional<std::string_view> algorithm);

const std::optional<c10::TypedOperatorHandle<Linear>> &oneDnnsLinear() {
  static const auto found = [] {
    std::optional<c10::TypedOperatorHandle<Linear>> typed;
    try {
      if (auto handle = c10::Dispatcher::singleton().findSchema(
              {"mkldnn::_linear_pointwise", ""}))
        typed = handle->typed<Linear>();
    } catch (const c10::Error &) {
      // In this version of LibTorch, the operator has other arguments. So
      // oneDNN is not used.
    }
    return typed;
  }();
  return found;
}

/// Whether MKL uses only half of the processor's vector width.
bool isWorthIt() {
#ifdef __x86_64__
  __builtin_cpu_init();
  return !__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

std::atomic<bool> &choice() {
  static std::atomic<bool> chosen{isWorthIt()};
  return chosen;
}

/// Whether to use oneDNN for the product of `a` [M, K] and a matrix [K, n].
bool isForOneDnn(const Tensor &a, int64_t n) {
  return a.is_cpu() && a.scalar_type() == at::kFloat && usesOneDnn() &&
         a.numel() * n >= kFewest;
}

Tensor byOneDnn(const Tensor &x, const Tensor &weight,
                const std::optional<Tensor> &bias) {
  return oneDnnsLinear()->call(x, weight, bias, "none",
                               c10::List<std::optional<at::Scalar>>(), "");
}

} // namespace

bool usesOneDnn() {
  return choice().load(std::memory_order_relaxed) && oneDnnsLinear();
}

void useOneDnn(bool does) { choice().store(does); }

Tensor product(const Tensor &a, const Tensor &b) {
  return isForOneDnn(a, b.size(1)) ? byOneDnn(a, b.t(), std::nullopt) : a.mm(b);
}

void productTo(Tensor &result, const Tensor &a, const Tensor &b) {
  if (isForOneDnn(a, b.size(1)))
    result.copy_(byOneDnn(a, b.t(), std::nullopt));
  else
    at::mm_out(result, a, b);
}

Tensor productWithBias(const Tensor &bias, const Tensor &x,
                       const Tensor &weight) {
  // Make the bias contiguous, as oneDNN's operator assumes.
  return isForOneDnn(x, weight.size(0)) ? byOneDnn(x, weight, bias.contiguous())
                                        : at::addmm(bias, x, weight.t());
}

void addProduct(Tensor &sum, bool adds, const Tensor &a, const Tensor &b) {
  const at::ScalarType type = sum.scalar_type();
  const int beta = adds ? 1 : 0;
  if (a.is_cuda() && a.scalar_type() != type) {
    at::addmm_out(sum, sum, a, b, type, beta);
    return;
  }
  if (a.is_cpu() && type == at::kDouble) {
    const Tensor made = a.mm(b);
    if (adds)
      sum.add_(made);
    else
      sum.copy_(made);
    return;
  }
  const Tensor own = a.to(type), other = b.to(type);
  if (!isForOneDnn(own, sum.size(1))) {
    sum.addmm_(own, other, beta);
    return;
  }
  const int64_t block = std::max<int64_t>(
      1, kProductBlockElements / std::max(sum.size(1), own.size(1)));
  for (int64_t first = 0; first < sum.size(0); first += block) {
    const int64_t rows = std::min(block, sum.size(0) - first);
    const Tensor part =
        byOneDnn(own.narrow(0, first, rows), other.t(), std::nullopt);
    Tensor to = sum.narrow(0, first, rows);
    if (adds)
      to.add_(part);
    else
      to.copy_(part);
  }
}

} // namespace chimera::runtime
