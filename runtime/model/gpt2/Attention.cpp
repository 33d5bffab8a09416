//===- Attention.cpp - Causal self-attention on tensors -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The choice of an attention kernel. Fused kernels are called by name and not
// through scaled_dot_product_attention, so that the tensors that they save are
// known. All kernels of a GPU save the same amount.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/Attention.h"

#include "runtime/model/gpt2/UnfusedAttention.h"
#include "runtime/random/Philox.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>

#include <limits>
#include <mutex>

namespace chimera::runtime {
namespace {

using at::Tensor;

/// Attention by the memory-efficient kernel of a GPU. For dropout, the kernel
/// takes one random number for each element of the probabilities [samples,
/// heads, tokens, tokens], in order, from a cuRAND sequence. `draw` has the key
/// of the sequence and the offset of its first number, which must be a multiple
/// of 4.
Tensor efficientAttention(const Tensor &q, const Tensor &k, const Tensor &v,
                          double dropped, Dropout::Draw draw) {
  // Ranks that are threads may share a GPU and its generator. So only one
  // thread at a time may set the generator and launch the kernel.
  static std::mutex mutex;
  std::unique_lock drawing(mutex, std::defer_lock);
  if (dropped > 0) {
    drawing.lock();
    at::Generator generator = at::globalContext().defaultGenerator(q.device());
    std::lock_guard lock(generator.mutex());
    generator.set_current_seed(draw.key);
    generator.set_offset(draw.first);
  }
  return std::get<0>(at::_scaled_dot_product_efficient_attention(
      q, k, v, /*attn_bias=*/std::nullopt,
      /*compute_log_sumexp=*/at::GradMode::is_enabled(), dropped,
      /*is_causal=*/true));
}

/// Whether efficientAttention keeps the same elements as computeDropoutMask.
/// This depends on LibTorch's version, so the function tries a small case. All
/// scores are equal, and the values are the identity matrix, so the output has
/// the probabilities themselves. Waits for the GPU.
bool drawsAsWeDo(const at::TensorOptions &options) {
  at::NoGradGuard noGraph;
  // The number of tokens is larger than the kernel's block size, and not a
  // multiple of it.
  constexpr int64_t kSamples = 2, kHeads = 2, kTokens = 136;
  constexpr int64_t kShape[] = {kSamples, kHeads, kTokens, kTokens};
  constexpr Dropout::Draw kDraw{.key = 0x0123456789abcdef,
                                .first = (uint64_t(1) << 33) + 4};
  const Tensor equal = at::zeros(kShape, options);
  const Tensor each = at::eye(kTokens, options).expand(kShape).contiguous();
  Tensor kept = at::empty(kShape, at::kBool);
  computeDropoutMask(0.5, kDraw.key, kDraw.first, kept.numel(),
                     kept.data_ptr<bool>());
  return efficientAttention(equal, equal, each, 0.5, kDraw)
      .ne(0)
      .cpu()
      .equal(kept.tril_());
}

bool dropsByFusedKernel(const Tensor &q, Dropout::Draw draw) {
  const int64_t probabilities = q.size(0) * q.size(1) * q.size(2) * q.size(2);
  // Do not use a fused kernel if the offset is not a multiple of 4, as the
  // generator requires, or if there are more probabilities than a 32-bit number
  // can count.
  if (draw.first % 4 != 0 ||
      probabilities > std::numeric_limits<int32_t>::max())
    return false;
  static const bool asWeDo = drawsAsWeDo(q.options().requires_grad(false));
  return asWeDo;
}

/// The bfloat16 kernel that LibTorch expects to be fastest on this GPU. It must
/// not be used with dropout: most of these kernels draw random numbers in
/// another order than computeDropoutMask.
Tensor narrowAttention(const Tensor &q, const Tensor &k, const Tensor &v) {
  switch (static_cast<at::SDPBackend>(
      at::_fused_sdp_choice(q, k, v, /*attn_mask=*/std::nullopt,
                            /*dropout_p=*/0, /*is_causal=*/true))) {
  case at::SDPBackend::cudnn_attention:
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(
        q, k, v, /*attn_bias=*/std::nullopt,
        /*compute_log_sumexp=*/at::GradMode::is_enabled(), /*dropout_p=*/0,
        /*is_causal=*/true, /*return_debug_mask=*/false));
  case at::SDPBackend::flash_attention:
    return std::get<0>(at::_scaled_dot_product_flash_attention(
        q, k, v, /*dropout_p=*/0, /*is_causal=*/true,
        /*return_debug_mask=*/false));
  default:
    return efficientAttention(q, k, v, 0, {});
  }
}

/// Attention on [samples, heads, tokens, width] by a fused kernel. Returns an
/// undefined tensor if the device has no such kernel for these operands.
Tensor fusedAttention(const Tensor &q, const Tensor &k, const Tensor &v,
                      const Dropout &dropout) {
  if (q.is_cpu())
    return dropout.isActive()
               ? Tensor()
               : std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
                     q, k, v, /*dropout_p=*/0, /*is_causal=*/true));
  // The fused kernels require rows whose size is a multiple of 16 bytes.
  const bool isNarrow = q.scalar_type() == at::kBFloat16;
  if (!(isNarrow ? q.size(-1) % 8 == 0
                 : q.scalar_type() == at::kFloat && q.size(-1) % 4 == 0))
    return {};
  if (dropout.isActive()) {
    const Dropout::Draw draw = dropout.drawOf(
        kAttention, q.size(0) * q.size(1) * q.size(2) * q.size(2));
    if (!dropsByFusedKernel(q, draw))
      return {};
    return efficientAttention(q, k, v, dropout.probability(), draw);
  }
  return isNarrow ? narrowAttention(q, k, v)
                  : efficientAttention(q, k, v, 0, {});
}

} // namespace

Tensor causalAttention(const Tensor &projected, int64_t heads,
                       const Dropout &dropout) {
  const int64_t b = projected.size(0), t = projected.size(1);
  const int64_t c = projected.size(2) / 3;
  std::vector<Tensor> parts = projected.split(c, -1);
  for (Tensor &part : parts)
    part = part.view({b, t, heads, c / heads}).transpose(1, 2);
  if (Tensor mixed = fusedAttention(parts[0], parts[1], parts[2], dropout);
      mixed.defined())
    return mixed.transpose(1, 2).reshape({b, t, c});
  return unfusedAttention(projected, heads, dropout);
}

} // namespace chimera::runtime
