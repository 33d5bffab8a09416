//===- AttentionTest.cpp - Attention on a GPU -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares attention on a GPU, forward and backward, with the formula in
// float64 on the host. The GPU chooses the kernel. The fused kernels treat
// these sizes, layouts and masks in different ways.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Attention.h"
#include "runtime/model/graph/FusedAttention.h"
#include "runtime/model/tensors/TensorOver.h"
#include "runtime/train/Accelerator.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>

using namespace chimera::runtime;
using at::Tensor;

namespace {

/// The memory of queries, keys and values [samples, heads, tokens, width].
enum class Layout {
  ByHeads,  ///< [samples, heads, tokens, width]
  ByTokens, ///< [samples, tokens, heads, width]
  Shifted,  ///< as ByHeads, but rows do not begin at a multiple of 16 bytes
};

/// The keys that a mask hides from tokens.
enum class Mask {
  None,
  Keys,   ///< some keys of each sample, for all tokens
  Tokens, ///< some keys of each token, and all keys of one token
  Far,    ///< all keys of some tokens, by large finite numbers
};

struct Case {
  at::ScalarType type;
  double dropout;
  bool isCausal;
  Layout layout;
  int64_t tokens, width;
  int64_t keyHeads = 4;
  Mask mask = Mask::None;
};

std::ostream &operator<<(std::ostream &out, const Case &c) {
  return out << at::toString(c.type) << ", dropout " << c.dropout << ", causal "
             << c.isCausal << ", layout " << static_cast<int>(c.layout) << ", "
             << c.tokens << " tokens, width " << c.width << ", " << c.keyHeads
             << " heads of keys, mask " << static_cast<int>(c.mask);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble})
    for (double dropout : {0.0, 0.3})
      for (bool isCausal : {false, true})
        for (Layout layout :
             {Layout::ByHeads, Layout::ByTokens, Layout::Shifted})
          for (auto [tokens, width] : {std::pair<int64_t, int64_t>(64, 64),
                                       {40, 64},
                                       {64, 136},
                                       {64, 200},
                                       {64, 256},
                                       {64, 6}})
            all.push_back({type, dropout, isCausal, layout, tokens, width});
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble})
    for (double dropout : {0.0, 0.3})
      for (bool isCausal : {false, true})
        for (int64_t keyHeads : {1, 2, 4})
          for (Mask mask : {Mask::None, Mask::Keys, Mask::Tokens, Mask::Far})
            for (int64_t tokens : {40, 160}) {
              // Without a fused kernel, the sums of far numbers and scores are
              // rounded.
              if (mask == Mask::Far && type == at::kDouble)
                continue;
              all.push_back({type, dropout, isCausal, Layout::ByTokens, tokens,
                             64, keyHeads, mask});
            }
  return all;
}

constexpr int64_t kSamples = 2, kHeads = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor operand(const Case &c, int64_t heads = kHeads) {
  const at::TensorOptions options = at::dtype(c.type);
  switch (c.layout) {
  case Layout::ByHeads:
    return at::randn({kSamples, heads, c.tokens, c.width}, options);
  case Layout::ByTokens:
    return at::randn({kSamples, c.tokens, heads, c.width}, options)
        .transpose(1, 2);
  case Layout::Shifted:
    return at::randn({kSamples, heads, c.tokens, c.width + 1}, options)
        .narrow(-1, 1, c.width);
  }
  return {};
}

Tensor maskOf(const Case &c) {
  if (c.mask == Mask::None)
    return {};
  if (c.mask == Mask::Far) { // for all samples and heads
    const Tensor mask = at::randn({c.tokens, c.tokens}, c.type);
    mask.select(0, 2).fill_(-1e9);
    mask.select(0, 5).fill_(c.type == at::kBFloat16 ? -3.3e38 : -3.4e38);
    mask.select(0, 7).narrow(0, 1, 20).fill_(-1e15);
    return mask;
  }
  const int64_t rows = c.mask == Mask::Tokens ? c.tokens : 1;
  const Tensor shown = at::randn({kSamples, 1, rows, c.tokens}, c.type);
  const Tensor mask = shown.masked_fill(at::rand_like(shown) < 0.3, -kInfinity);
  if (c.mask == Mask::Tokens)
    mask.select(2, 1).fill_(-kInfinity);
  return mask;
}

/// The tensor on another device or in another type, with the same strides.
Tensor moved(const Tensor &x, const at::TensorOptions &options) {
  return x.storage_offset() == 0 ? x.to(options)
                                 : at::constant_pad_nd(x.to(options), {1, 0})
                                       .narrow(-1, 1, x.size(-1));
}

Dropout dropoutOf(double dropped, StageKernels *kernels) {
  return Dropout(dropped, /*seed=*/7, /*layer=*/2,
                 MicroBatch{.step = 3, .index = 5}, kernels);
}

/// The output and the three gradients by the formula. Requires float64.
std::vector<Tensor> formula(const AttentionCall &call, const Tensor &gradient,
                            double dropped) {
  const auto [q, k, v, mask, isCausal, scale, site] = withKeysOfEachHead(call);
  const Dropout dropout = dropoutOf(dropped, nullptr);
  Tensor added = mask.defined() ? mask : at::zeros({1, k.size(2)}, at::kDouble);
  if (isCausal)
    added = added.masked_fill(
        at::ones({q.size(2), k.size(2)}, at::kBool).triu(1), -kInfinity);
  // Less the largest number of each token, so that no score is rounded.
  const Tensor largest = added.amax(-1, true);
  const Tensor scores = q.matmul(k.mT()).mul(scale).add(
      added - largest.masked_fill(largest.eq(-kInfinity), 0));
  const Tensor isHidden = scores.eq(-kInfinity).all(-1, true);
  const Tensor shares =
      scores.masked_fill(isHidden, 0).softmax(-1).masked_fill(isHidden, 0);
  Tensor kept = at::ones_like(shares);
  if (dropped > 0)
    kept = dropout.mask(site, shares.numel(), 0, shares.sizes(), at::kCPU)
               .to(at::kDouble)
               .mul(dropout.scale());
  const Tensor after = shares.mul(kept),
               ofShares = gradient.matmul(v.mT()).mul(kept);
  const Tensor ofScores =
      shares.mul(ofShares - ofShares.mul(shares).sum(-1, true)).mul(scale);
  const int64_t keyHeads = call.key.size(1);
  return {after.matmul(v), ofScores.matmul(k),
          sumOverHeads(ofScores.mT().matmul(q), keyHeads),
          sumOverHeads(after.mT().matmul(gradient), keyHeads)};
}

/// The output and the three gradients.
std::vector<Tensor> attend(const AttentionCall &call, const Tensor &gradient,
                           double dropped, StageKernels *kernels) {
  const Dropout dropout = dropoutOf(dropped, kernels);
  // On a GPU, this test is about the fused kernels.
  if (call.query.is_cuda() && call.query.scalar_type() != at::kDouble &&
      call.query.size(3) * call.query.element_size() % 16 == 0) {
    EXPECT_NE(fusedKernelFor(withKeysOfEachHead(call), dropout),
              AttentionKernel::None);
  }
  const AttentionResult result = attention(call, dropout);
  const auto gradients = attentionBackward(gradient, call, result, dropout);
  return {result.output, gradients[0], gradients[1], gradients[2]};
}

class GpuAttention : public testing::TestWithParam<Case> {
protected:
  static void SetUpTestSuite() {
    accelerator = loadCuda({}).release(); // used until the process ends
    device = accelerator->makeDevice(0, 0).release();
    queue = device->makeQueue("compute").release();
  }
  /// Runs `work` on the GPU and waits until it is done.
  static void onGpu(const std::function<void()> &work) {
    queue->launch({}, [&](const AddressMap &) { work(); });
    device->waitFor(queue->record(), std::chrono::minutes(10));
  }

  inline static Accelerator *accelerator = nullptr;
  inline static Device *device = nullptr;
  inline static Queue *queue = nullptr;
};

TEST_P(GpuAttention, IsTheFormulaAndSoIsItsGradient) {
  const Case c = GetParam();
  if (c.mask == Mask::Far && c.dropout > 0 && !accelerator->placement().isCuda)
    GTEST_SKIP() << "written out, sums of far numbers and scores are rounded";
  const at::NoGradGuard noGraph;
  at::manual_seed(1);
  const AttentionCall call{.query = operand(c),
                           .key = operand(c, c.keyHeads),
                           .value = operand(c, c.keyHeads),
                           .mask = maskOf(c),
                           .isCausal = c.isCausal,
                           .scale = 0.3,
                           .site = 1};
  const Tensor gradient = operand(c);
  auto on = [&](const at::TensorOptions &options) {
    AttentionCall other = call;
    for (Tensor *each : {&other.query, &other.key, &other.value})
      *each = moved(*each, options);
    if (other.mask.defined())
      other.mask = other.mask.to(options);
    return other;
  };
  const std::vector<Tensor> expected =
      formula(on(at::dtype(at::kDouble)), gradient.to(at::kDouble), c.dropout);
  std::vector<Tensor> got;
  onGpu([&] {
    const DevicePlacement placement = accelerator->placement();
    const at::TensorOptions there = at::device(deviceOf(placement));
    got =
        attend(on(there), moved(gradient, there), c.dropout, placement.kernels);
    for (Tensor &each : got)
      each = each.cpu().to(at::kDouble);
  });
  const double tolerance = c.type == at::kDouble  ? 1e-12
                           : c.type == at::kFloat ? 1e-4
                                                  : 3e-2;
  for (size_t i = 0; i < got.size(); ++i) {
    const double largest = expected[i].abs().max().item<double>();
    EXPECT_GT(largest, 0);
    EXPECT_LE((got[i] - expected[i]).abs().max().item<double>(),
              tolerance * largest)
        << "result " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuAttention, testing::ValuesIn(cases()));

} // namespace
