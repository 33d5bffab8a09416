//===- AttentionMask.cpp - Masks as attention kernels read them -----------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/AttentionMask.h"

#include <ATen/ATen.h>

#include <vector>

using namespace chimera::runtime;
using at::Tensor;

namespace {

/// The efficient kernel reads masks whose rows begin at a multiple of this many
/// elements.
constexpr int64_t kMaskRow = 16;

/// For each token, the largest number of the mask among the keys that the token
/// may see, [samples, heads, tokens, 1]; the first three dimensions may be 1.
Tensor largestSeen(const AttentionCall &call) {
  Tensor seen = call.mask;
  if (call.isCausal)
    seen = seen.masked_fill(at::ones({call.query.size(2), call.key.size(2)},
                                     seen.options().dtype(at::kBool))
                                .triu(1),
                            kHides);
  return seen.amax(-1, /*keepdim=*/true);
}

/// Subtracts one number from the mask of each token. This changes no
/// probability. The number is 0, unless all numbers of the token are below
/// kFar. Then it is the largest of them: beside -1e9, for example, logSumExp
/// cannot represent the logarithm of the number of keys, and gradients would be
/// wrong.
Tensor nearMask(const AttentionCall &call, const Tensor &largest) {
  constexpr double kFar = -1e4;
  return call.mask - largest.masked_fill(
                         largest.eq(kHides).logical_or(largest.gt(kFar)), 0);
}

} // namespace

std::optional<Tensor> chimera::runtime::maskForHost(const AttentionCall &call) {
  if (!call.mask.defined())
    return std::nullopt;
  return nearMask(call, largestSeen(call));
}

EfficientMask
chimera::runtime::maskForEfficientKernel(const AttentionCall &call) {
  if (!call.mask.defined())
    return {};
  // The kernel's arithmetic does not overflow with this number.
  constexpr double kHidden = -1e30;
  const int64_t keys = call.key.size(2);
  const Tensor largest = largestSeen(call);
  const Tensor near = nearMask(call, largest).clamp_min(kHidden);
  std::vector<int64_t> shape = near.sizes().vec();
  shape.back() = keys;
  const Tensor rows =
      at::constant_pad_nd(near.expand(shape),
                          {0, (kMaskRow - keys % kMaskRow) % kMaskRow})
          .contiguous();
  return {rows.narrow(-1, 0, keys)
              .expand({call.query.size(0), call.query.size(1),
                       call.query.size(2), keys}),
          largest.eq(kHides)};
}
