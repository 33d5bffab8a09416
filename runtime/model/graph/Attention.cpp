//===- Attention.cpp - The attention call of a graph ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Attention.h"

#include "runtime/model/graph/Checks.h"
#include "runtime/model/graph/FusedAttention.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check(const AttentionCall &call) {
  const Tensor &q = call.query, &k = call.key, &v = call.value;
  expect(q.dim() == 4 && k.dim() == 4 && v.sizes() == k.sizes() &&
             q.size(0) == k.size(0) && q.size(3) == k.size(3) &&
             k.size(1) > 0 && q.size(1) % k.size(1) == 0 && q.numel() > 0 &&
             k.numel() > 0,
         "queries [samples, heads, tokens, width], and keys and values "
         "[samples, key heads, keys, width]");
  const at::ScalarType type = q.scalar_type();
  expect((type == at::kFloat || type == at::kDouble || type == at::kBFloat16) &&
             k.scalar_type() == type && v.scalar_type() == type,
         "queries, keys and values of float32, float64 or bfloat16");
  expect(std::isfinite(call.scale), "a finite scale");
  const Tensor &mask = call.mask;
  if (!mask.defined())
    return;
  expect((mask.dim() == 2 || mask.dim() == 4) && mask.is_floating_point() &&
             at::is_expandable_to(mask.sizes(),
                                  {q.size(0), q.size(1), q.size(2), k.size(2)}),
         "a mask of numbers for the scores [samples, heads, tokens, keys]");
}

/// The type in which scores and probabilities are computed.
at::ScalarType wideTypeOf(const Tensor &x) {
  return x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
}

// All kernels give the results the same strides, because a package's views
// depend on them.

/// A tensor for the gradient of `x`.
Tensor emptyGradient(const Tensor &x, at::ScalarType type) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)},
                   x.options().dtype(type))
      .transpose(1, 2);
}

/// The call as the fused kernels of its device take it. The host's kernel takes
/// shared keys.
AttentionCall asKernelsTake(const AttentionCall &call) {
  return call.query.is_cpu() ? call : withKeysOfEachHead(call);
}

/// Attention on a few heads at a time.
class WrittenOut {
public:
  WrittenOut(const AttentionCall &call, const Dropout &dropout)
      : call(call), dropout(dropout), samples(call.query.size(0)),
        heads(call.query.size(1)), tokens(call.query.size(2)),
        keys(call.key.size(2)), ofKey(heads / call.key.size(1)),
        type(wideTypeOf(call.query)) {
    if (call.isCausal)
      future =
          at::full({tokens, keys}, -kInfinity, call.query.options().dtype(type))
              .triu_(1);
  }

  AttentionResult forward() const {
    AttentionResult result{
        at::empty_like(call.query),
        at::empty({samples, heads, tokens}, call.query.options().dtype(type))};
    forBlocks([&](Block block) {
      const Tensor scores = scoresOf(block);
      of(result.logSumExp, block).copy_(scores.logsumexp(-1));
      Tensor shares = probabilities(scores);
      if (dropout.isActive())
        shares.mul_(kept(block)).mul_(dropout.scale());
      of(result.output, block).copy_(shares.bmm(ofKeys(call.value, block)));
    });
    return result;
  }

  std::array<Tensor, 3> backward(const Tensor &gradient) const {
    Tensor queries = emptyGradient(call.query, call.query.scalar_type());
    // Several heads may add to one head of keys.
    Tensor keys = emptyGradient(call.key, type).zero_();
    Tensor values = emptyGradient(call.value, type).zero_();
    forBlocks([&](Block block) {
      const Tensor before = probabilities(scoresOf(block));
      const Tensor given = of(gradient, block).to(type);
      Tensor after = before;
      Tensor ofAfter = given.bmm(ofKeys(call.value, block).transpose(1, 2));
      if (dropout.isActive()) {
        const Tensor mask = kept(block);
        after = before.mul(mask).mul_(dropout.scale());
        ofAfter.mul_(mask).mul_(dropout.scale());
      }
      addToKeys(values, block, after.transpose(1, 2).bmm(given));
      const Tensor ofScores =
          at::_softmax_backward_data(ofAfter, before, -1, type)
              .mul_(call.scale);
      of(queries, block).copy_(ofScores.bmm(ofKeys(call.key, block)));
      addToKeys(keys, block,
                ofScores.transpose(1, 2).bmm(of(call.query, block).to(type)));
    });
    return {queries, keys.to(call.key.scalar_type()),
            values.to(call.value.scalar_type())};
  }

private:
  /// Consecutive heads of one sample.
  struct Block {
    int64_t sample, first, count;
  };
  /// Calls `work` with each block. A block has at most `atOnce` probabilities,
  /// but at least one head.
  template <typename Work> void forBlocks(const Work &work) const {
    // On a host, the probabilities should stay in the caches. On a GPU, kernels
    // should be large.
    const int64_t atOnce = call.query.is_cpu() ? 1 << 18 : 1 << 24;
    const int64_t most = std::max<int64_t>(1, atOnce / (tokens * keys));
    for (int64_t sample = 0; sample < samples; ++sample)
      for (int64_t first = 0; first < heads; first += most)
        work({sample, first, std::min(most, heads - first)});
  }

  /// The part of a tensor [samples, heads, ...] that belongs to a block.
  static Tensor of(const Tensor &x, Block block) {
    return x[block.sample].narrow(0, block.first, block.count);
  }
  /// For each head of a block, the head of keys that it uses.
  Tensor headsOfKeys(Block block) const {
    return at::arange(block.first, block.first + block.count,
                      call.query.options().dtype(at::kLong))
        .floor_divide(ofKey);
  }
  /// The keys or values of each head of a block, [heads, keys, width].
  Tensor ofKeys(const Tensor &x, Block block) const {
    const Tensor part =
        ofKey == 1 ? of(x, block)
                   : x[block.sample].index_select(0, headsOfKeys(block));
    return part.to(type);
  }
  void addToKeys(Tensor &sum, Block block, const Tensor &gradient) const {
    if (ofKey == 1)
      of(sum, block).copy_(gradient);
    else
      sum[block.sample].index_add_(0, headsOfKeys(block), gradient);
  }

  Tensor scoresOf(Block block) const {
    const Tensor queries = of(call.query, block).to(type),
                 turned = ofKeys(call.key, block).transpose(1, 2);
    Tensor added = future;
    if (call.mask.defined()) {
      const Tensor mask =
          of(call.mask.expand({samples, heads, tokens, keys}), block).to(type);
      added = future.defined() ? mask + future : mask;
    }
    return added.defined() ? at::baddbmm(added, queries, turned, 1, call.scale)
                           : queries.bmm(turned).mul_(call.scale);
  }
  /// If all scores of a token are -∞, its probabilities are 0.
  Tensor probabilities(const Tensor &scores) const {
    Tensor shares = scores.softmax(-1);
    if (call.mask.defined())
      shares.masked_fill_(scores.eq(-kInfinity).all(-1, true), 0);
    return shares;
  }
  /// The dropout mask of a block.
  Tensor kept(Block block) const {
    const int64_t each = tokens * keys;
    return dropout.mask(call.site, samples * heads * each,
                        (block.sample * heads + block.first) * each,
                        {block.count, tokens, keys}, call.query.device());
  }

  const AttentionCall &call;
  const Dropout &dropout;
  int64_t samples, heads, tokens, keys;
  int64_t ofKey; ///< number of heads that use one head of keys
  at::ScalarType type;
  Tensor future; ///< the causal mask, which is added to the scores
};

} // namespace

AttentionResult chimera::runtime::attention(const AttentionCall &call,
                                            const Dropout &dropout) {
  check(call);
  const AttentionCall whole = asKernelsTake(call);
  const AttentionKernel kernel = fusedKernelFor(whole, dropout);
  if (kernel == AttentionKernel::None)
    return WrittenOut(call, dropout).forward();
  AttentionResult result = fusedAttention(kernel, whole, dropout);
  if (result.output.strides() !=
      at::infer_dense_strides(call.query.sizes(), call.query.strides()))
    result.output = at::empty_like(call.query).copy_(result.output);
  return result;
}

std::array<Tensor, 3> chimera::runtime::attentionBackward(
    const Tensor &gradient, const AttentionCall &call,
    const AttentionResult &result, const Dropout &dropout) {
  check(call);
  const Tensor &q = call.query;
  expect(gradient.sizes() == q.sizes() &&
             gradient.scalar_type() == q.scalar_type() &&
             result.output.sizes() == q.sizes() &&
             result.output.scalar_type() == q.scalar_type() &&
             result.logSumExp.sizes() == q.sizes().slice(0, 3) &&
             result.logSumExp.scalar_type() == wideTypeOf(q),
         "a gradient and a result of the same attention");
  const AttentionCall whole = asKernelsTake(call);
  const AttentionKernel kernel = fusedKernelFor(whole, dropout);
  if (kernel == AttentionKernel::None)
    return WrittenOut(call, dropout).backward(gradient);
  std::array<Tensor, 3> made =
      fusedAttentionBackward(kernel, gradient, whole, result, dropout);
  for (Tensor *each : {&made[1], &made[2]})
    *each = sumOverHeads(*each, call.key.size(1));
  for (Tensor &each : made)
    if (!each.transpose(1, 2).is_contiguous())
      each = emptyGradient(each, each.scalar_type()).copy_(each);
  return made;
}
