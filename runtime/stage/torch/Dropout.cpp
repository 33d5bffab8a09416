//===- Dropout.cpp - Which elements a layer drops -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/torch/Dropout.h"

#include "runtime/stage/Philox.h"
#include "runtime/stage/StageKernels.h"

#include <ATen/ATen.h>

using namespace chimera::runtime;

Dropout::Dropout(double probability, uint64_t seed, uint32_t layer,
                 const std::optional<MicroBatch> &microBatch,
                 StageKernels *kernels)
    : dropped(microBatch ? probability : 0), seed(seed), layer(layer),
      microBatch(microBatch.value_or(MicroBatch{})), kernels(kernels) {}

Dropout::Draw Dropout::drawOf(DropoutSite site, int64_t elements) const {
  const uint64_t part = microBatch.index * microBatch.parts + microBatch.part;
  return {mix({seed, kDropout, layer, site, microBatch.step}),
          part * static_cast<uint64_t>(elements)};
}

at::Tensor Dropout::operator()(const at::Tensor &x, DropoutSite site) const {
  if (!acts())
    return x;
  const Draw draw = drawOf(site, x.numel());
  at::Tensor kept =
      at::empty(x.sizes(), at::dtype(at::kBool).device(x.device()));
  if (kernels)
    kernels->keepElements(dropped, draw.key, draw.first, x.numel(),
                          kept.data_ptr<bool>());
  else
    keepElements(dropped, draw.key, draw.first, x.numel(),
                 kept.data_ptr<bool>());
  // In this order autograd keeps the mask and nothing else.
  return x.mul(kept).mul_(1 / (1 - dropped));
}
