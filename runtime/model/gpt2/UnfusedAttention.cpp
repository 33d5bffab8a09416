//===- UnfusedAttention.cpp - Attention without a fused kernel ------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/gpt2/UnfusedAttention.h"

#include "runtime/model/gpt2/AutogradNode.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace chimera::runtime {
namespace {

using at::Tensor;

/// Attention on a few heads at a time, so that their probabilities stay in the
/// caches.
class WrittenOut {
public:
  WrittenOut(const Tensor &projected, int64_t heads, const Dropout &dropout)
      : heads(heads), samples(projected.size(0)), tokens(projected.size(1)),
        width(projected.size(2) / 3 / heads), dropout(dropout),
        options(projected.options().requires_grad(false)) {}

  /// The output of attention, [samples, tokens, width]. `projected` is
  /// [samples, tokens, 3 width]. If `keep` is true, saves the dropout masks for
  /// the backward.
  Tensor forward(const Tensor &projected, bool keep) {
    std::vector<Tensor> all = headsOf(projected, 3);
    Tensor mixed = at::empty_like(all[0]);
    const Tensor future = hides();
    forBlocks([&](int64_t first, int64_t count) {
      auto of = [&](size_t i) { return all[i].narrow(0, first, count); };
      Tensor after = probabilities(of(0), of(1), future);
      if (dropout.isActive()) {
        Tensor kept = mask(first, count);
        after = after.mul_(kept).mul_(dropout.scale());
        if (keep)
          masks.push_back(std::move(kept));
      }
      Tensor to = mixed.narrow(0, first, count);
      at::bmm_out(to, after, of(2));
    });
    return mixed.view({samples, heads, tokens, width})
        .transpose(1, 2)
        .reshape({samples, tokens, heads * width});
  }

  /// The gradient of `projected`, given the gradient of the output.
  Tensor backward(const Tensor &projected, const Tensor &ofOutput) {
    std::vector<Tensor> all = headsOf(projected, 3);
    const Tensor given = headsOf(ofOutput, 1)[0];
    Tensor whole = at::empty({3, samples * heads, tokens, width}, options);
    const Tensor future = hides();
    size_t block = 0;
    forBlocks([&](int64_t first, int64_t count) {
      auto of = [&](size_t i) { return all[i].narrow(0, first, count); };
      auto to = [&](int64_t i) { return whole[i].narrow(0, first, count); };
      const Tensor from = given.narrow(0, first, count);
      const Tensor before = probabilities(of(0), of(1), future);
      Tensor after = before, ofAfter = from.bmm(of(2).transpose(1, 2));
      if (dropout.isActive()) {
        const Tensor kept = masks.empty() ? mask(first, count) : masks[block++];
        after = before.mul(kept).mul_(dropout.scale());
        ofAfter.mul_(kept).mul_(dropout.scale());
      }
      Tensor ofQueries = to(0), ofKeys = to(1), ofValues = to(2);
      at::bmm_out(ofValues, after.transpose(1, 2), from);
      const Tensor ofScores =
          at::_softmax_backward_data(ofAfter, before, -1, before.scalar_type())
              .mul_(scale());
      at::bmm_out(ofQueries, ofScores, of(1));
      at::bmm_out(ofKeys, ofScores.transpose(1, 2), of(0));
    });
    return whole.view({3, samples, heads, tokens, width})
        .permute({1, 3, 0, 2, 4})
        .reshape({samples, tokens, 3 * heads * width});
  }

private:
  /// The maximum number of probabilities in a block. But a block always has at
  /// least one head.
  static constexpr int64_t kAtOnce = 1 << 18;

  template <typename Work> void forBlocks(const Work &work) const {
    const int64_t all = samples * heads;
    const int64_t most = std::max<int64_t>(1, kAtOnce / (tokens * tokens));
    for (int64_t first = 0; first < all; first += most)
      work(first, std::min(most, all - first));
  }

  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }

  /// Splits the last dimension into `parts` and separates the heads. Returns a
  /// tensor [samples * heads, tokens, width of a head] for each part.
  std::vector<Tensor> headsOf(const Tensor &x, int64_t parts) const {
    return x.reshape({samples, tokens, parts, heads, width})
        .permute({2, 0, 3, 1, 4})
        .reshape({parts, samples * heads, tokens, width})
        .unbind(0);
  }

  /// The causal mask, which is added to the scores.
  Tensor hides() const {
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
    return dropout.mask(kAttention, samples * heads * each, first * each,
                        {count, tokens, tokens}, options.device());
  }

  int64_t heads, samples, tokens, width;
  Dropout dropout;
  at::TensorOptions options;
  std::vector<Tensor> masks;
};

/// The node of an attention in autograd's graph. A graph is executed only once,
/// so `apply` releases `projected`.
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

Tensor unfusedAttention(const Tensor &projected, int64_t heads,
                        const Dropout &dropout) {
  const bool isGraph = at::GradMode::is_enabled();
  WrittenOut attention(projected, heads, dropout);
  Tensor mixed;
  {
    at::NoGradGuard noGraph;
    // On a GPU, masks are saved: the backward runs in another thread, which
    // cannot use the kernels of the rank's thread.
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
