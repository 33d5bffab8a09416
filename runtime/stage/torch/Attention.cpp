//===- Attention.cpp - Causal self-attention on tensors -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels are named rather than chosen by scaled_dot_product_attention, so that
// what they keep is known: Layout.cpp counts it. Those of a GPU keep as much as
// each other.
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Attention.h"

#include "runtime/stage/Philox.h"
#include "runtime/stage/torch/OwnNode.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace chimera::runtime {
namespace {

using at::Tensor;

/// Of a GPU. It draws element n of the probabilities [B, heads, T, T] as
/// number n of a sequence of cuRAND's, from where LibTorch's generator of that
/// GPU stands: `draw` says where, and its first element is a multiple of 4.
Tensor efficientAttention(const Tensor &q, const Tensor &k, const Tensor &v,
                          double dropped, Dropout::Draw draw) {
  // Ranks that are threads may share a GPU, and with it the generator.
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

/// Whether efficientAttention keeps what keepElements keeps: how it draws is
/// LibTorch's own matter. Asks it, with equal scores and values that let each
/// probability through, and waits for the answer.
bool drawsAsWeDo(const at::TensorOptions &options) {
  at::NoGradGuard noGraph;
  // More tokens than one block of the kernel has, and no multiple of that.
  constexpr int64_t kSamples = 2, kHeads = 2, kTokens = 136;
  constexpr int64_t kShape[] = {kSamples, kHeads, kTokens, kTokens};
  constexpr Dropout::Draw kDraw{.key = 0x0123456789abcdef,
                                .first = (uint64_t(1) << 33) + 4};
  const Tensor equal = at::zeros(kShape, options);
  const Tensor each = at::eye(kTokens, options).expand(kShape).contiguous();
  Tensor kept = at::empty(kShape, at::kBool);
  keepElements(0.5, kDraw.key, kDraw.first, kept.numel(),
               kept.data_ptr<bool>());
  return efficientAttention(equal, equal, each, 0.5, kDraw)
      .ne(0)
      .cpu()
      .equal(kept.tril_());
}

bool dropsByFusedKernel(const Tensor &q, Dropout::Draw draw) {
  const int64_t probabilities = q.size(0) * q.size(1) * q.size(2) * q.size(2);
  // The generator stands at multiples of 4, and the kernels count in 32 bits.
  if (draw.first % 4 != 0 ||
      probabilities > std::numeric_limits<int32_t>::max())
    return false;
  static const bool asWeDo = drawsAsWeDo(q.options().requires_grad(false));
  return asWeDo;
}

/// By whichever of a GPU's kernels for bfloat16 LibTorch holds to be the
/// fastest there. Most of them would draw in an order of their own.
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

/// The mix of [B, heads, T, width] values by a fused kernel; undefined where
/// the device has none for these.
Tensor fusedAttention(const Tensor &q, const Tensor &k, const Tensor &v,
                      const Dropout &dropout) {
  if (q.is_cpu())
    return dropout.acts()
               ? Tensor()
               : std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
                     q, k, v, /*dropout_p=*/0, /*is_causal=*/true));
  // Rows of 16 bytes.
  const bool isNarrow = q.scalar_type() == at::kBFloat16;
  if (!(isNarrow ? q.size(-1) % 8 == 0
                 : q.scalar_type() == at::kFloat && q.size(-1) % 4 == 0))
    return {};
  if (dropout.acts()) {
    const Dropout::Draw draw = dropout.drawOf(
        kAttention, q.size(0) * q.size(1) * q.size(2) * q.size(2));
    if (!dropsByFusedKernel(q, draw))
      return {};
    return efficientAttention(q, k, v, dropout.probability(), draw);
  }
  return isNarrow ? narrowAttention(q, k, v)
                  : efficientAttention(q, k, v, 0, {});
}

/// Attention without a fused kernel, and its gradient, for which only queries,
/// keys and values are kept: the probabilities are made again. Some heads at a
/// time, so that theirs stay in the caches.
class WrittenOut {
public:
  WrittenOut(const Tensor &projected, int64_t heads, const Dropout &dropout)
      : heads(heads), samples(projected.size(0)), tokens(projected.size(1)),
        width(projected.size(2) / 3 / heads), dropout(dropout),
        options(projected.options().requires_grad(false)) {}

  /// Of [B, T, 3 C]. Keeps the masks where there are any and `keep` says so.
  Tensor forward(const Tensor &projected, bool keep) {
    std::vector<Tensor> all = headsOf(projected, 3);
    Tensor mixed = at::empty_like(all[0]);
    const Tensor future = hidden();
    forBlocks([&](int64_t first, int64_t count) {
      auto of = [&](size_t i) { return all[i].narrow(0, first, count); };
      Tensor weights = probabilities(of(0), of(1), future);
      if (dropout.acts()) {
        Tensor kept = mask(first, count);
        weights = weights.mul_(kept).mul_(dropout.scale());
        if (keep)
          masks.push_back(std::move(kept));
      }
      Tensor to = mixed.narrow(0, first, count);
      at::bmm_out(to, weights, of(2));
    });
    return mixed.view({samples, heads, tokens, width})
        .transpose(1, 2)
        .reshape({samples, tokens, heads * width});
  }

  /// The gradient of `projected`, from that of the output.
  Tensor backward(const Tensor &projected, const Tensor &ofOutput) {
    std::vector<Tensor> all = headsOf(projected, 3);
    const Tensor given = headsOf(ofOutput, 1)[0];
    Tensor whole = at::empty({3, samples * heads, tokens, width}, options);
    const Tensor future = hidden();
    size_t block = 0;
    forBlocks([&](int64_t first, int64_t count) {
      auto of = [&](size_t i) { return all[i].narrow(0, first, count); };
      auto to = [&](int64_t i) { return whole[i].narrow(0, first, count); };
      const Tensor from = given.narrow(0, first, count);
      const Tensor before = probabilities(of(0), of(1), future);
      Tensor weights = before, ofWeights = from.bmm(of(2).transpose(1, 2));
      if (dropout.acts()) {
        const Tensor kept = masks.empty() ? mask(first, count) : masks[block++];
        weights = before.mul(kept).mul_(dropout.scale());
        ofWeights.mul_(kept).mul_(dropout.scale());
      }
      Tensor ofQueries = to(0), ofKeys = to(1), ofValues = to(2);
      at::bmm_out(ofValues, weights.transpose(1, 2), from);
      const Tensor ofScores = at::_softmax_backward_data(ofWeights, before, -1,
                                                         before.scalar_type())
                                  .mul_(scale());
      at::bmm_out(ofQueries, ofScores, of(1));
      at::bmm_out(ofKeys, ofScores.transpose(1, 2), of(0));
    });
    return whole.view({3, samples, heads, tokens, width})
        .permute({1, 3, 0, 2, 4})
        .reshape({samples, tokens, 3 * heads * width});
  }

private:
  /// Probabilities that are made at a time, or those of one head.
  static constexpr int64_t kAtOnce = 1 << 18;

  template <typename Work> void forBlocks(const Work &work) const {
    const int64_t all = samples * heads;
    const int64_t most = std::max<int64_t>(1, kAtOnce / (tokens * tokens));
    for (int64_t first = 0; first < all; first += most)
      work(first, std::min(most, all - first));
  }

  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }

  /// The `parts` side by side in the last dimension, of all heads: [B * heads,
  /// T, width] each.
  std::vector<Tensor> headsOf(const Tensor &x, int64_t parts) const {
    return x.view({samples, tokens, parts, heads, width})
        .permute({2, 0, 3, 1, 4})
        .reshape({parts, samples * heads, tokens, width})
        .unbind(0);
  }

  /// To add to scores.
  Tensor hidden() const {
    return at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(),
                    options)
        .triu_(1);
  }
  Tensor probabilities(const Tensor &q, const Tensor &k,
                       const Tensor &future) const {
    return at::baddbmm(future, q, k.transpose(1, 2), 1, scale()).softmax(-1);
  }
  Tensor mask(int64_t first, int64_t count) const {
    const int64_t each = tokens * tokens;
    return dropout.kept(kAttention, samples * heads * each, first * each,
                        {count, tokens, tokens}, options.device());
  }

  int64_t heads, samples, tokens, width;
  Dropout dropout;
  at::TensorOptions options;
  std::vector<Tensor> masks;
};

/// A graph is run once, so it gives away what it holds.
class WrittenOutNode final : public torch::autograd::Node {
public:
  WrittenOutNode(Tensor projected, WrittenOut attention)
      : projected(std::move(projected)), attention(std::move(attention)) {}

  torch::autograd::variable_list
  apply(torch::autograd::variable_list &&gradients) override {
    at::NoGradGuard noGraph;
    Tensor result = attention.backward(projected, gradients[0]);
    projected.reset();
    return {result};
  }

private:
  Tensor projected;
  WrittenOut attention;
};

} // namespace

Tensor attend(const Tensor &projected, int64_t heads, const Dropout &dropout) {
  const int64_t b = projected.size(0), t = projected.size(1);
  const int64_t c = projected.size(2) / 3;
  std::vector<Tensor> parts = projected.split(c, -1);
  for (Tensor &part : parts)
    part = part.view({b, t, heads, c / heads}).transpose(1, 2);
  if (Tensor mixed = fusedAttention(parts[0], parts[1], parts[2], dropout);
      mixed.defined())
    return mixed.transpose(1, 2).reshape({b, t, c});

  const bool isGraph = at::GradMode::is_enabled();
  WrittenOut attention(projected, heads, dropout);
  Tensor mixed;
  {
    at::NoGradGuard noGraph;
    // A GPU's kernels draw for the rank's thread, and a backward runs in
    // another.
    mixed =
        attention.forward(projected.detach(), isGraph && projected.is_cuda());
  }
  if (isGraph)
    setNode(mixed, torch::autograd::collect_next_edges(projected),
            std::make_unique<WrittenOutNode>(projected.detach(),
                                             std::move(attention)));
  return mixed;
}

} // namespace chimera::runtime
