//===- Dropout.cpp - Dropout masks of a layer -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Dropout.h"

#include "runtime/model/StageKernels.h"
#include "runtime/random/Philox.h"

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

at::Tensor Dropout::mask(DropoutSite site, int64_t elements, int64_t begin,
                         at::IntArrayRef shape, at::Device device) const {
  const Draw draw = drawOf(site, elements);
  const uint64_t first = draw.first + static_cast<uint64_t>(begin);
  at::Tensor all = at::empty(shape, at::dtype(at::kBool).device(device));
  if (kernels)
    kernels->computeDropoutMask(dropped, draw.key, first, all.numel(),
                                all.data_ptr<bool>());
  else
    computeDropoutMask(dropped, draw.key, first, all.numel(),
                       all.data_ptr<bool>());
  return all;
}
