//===- Dropout.cpp - Dropout masks of a layer -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/tensors/Dropout.h"

#include "runtime/random/Philox.h"

#include <ATen/ATen.h>

#include <optional>

using namespace chimera::runtime;

/// The element type that StageKernels::drop has for a tensor type, if any.
static std::optional<ElementType> typeOfKernel(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return ElementType::Float32;
  case at::kDouble:
    return ElementType::Float64;
  case at::kBFloat16:
    return ElementType::BFloat16;
  default:
    return std::nullopt;
  }
}

Dropout::Dropout(double probability, uint64_t seed, uint32_t layer,
                 const std::optional<MicroBatch> &microBatch,
                 StageKernels *kernels, const uint64_t *step)
    : dropped(microBatch ? probability : 0), seed(seed), layer(layer),
      microBatch(microBatch.value_or(MicroBatch{})), kernels(kernels),
      step(step) {}

uint64_t Dropout::firstOf(int64_t elements) const {
  const uint64_t part = microBatch.index * microBatch.parts + microBatch.part;
  return part * static_cast<uint64_t>(elements);
}

Dropout::Draw Dropout::drawOf(DropoutSite site, int64_t elements) const {
  return {mix({seed, kDropout, layer, site, microBatch.step}),
          firstOf(elements)};
}

DropoutKey Dropout::keyOf(DropoutSite site) const {
  if (step)
    return {mix({seed, kDropout, layer, site}), step};
  return {mix({seed, kDropout, layer, site, microBatch.step})};
}

at::Tensor Dropout::mask(DropoutSite site, int64_t elements, int64_t begin,
                         at::IntArrayRef shape, at::Device device) const {
  const uint64_t first = firstOf(elements) + static_cast<uint64_t>(begin);
  at::Tensor all = at::empty(shape, at::dtype(at::kBool).device(device));
  if (kernels)
    kernels->computeDropoutMask(dropped, keyOf(site), first, all.numel(),
                                all.data_ptr<bool>());
  else
    computeDropoutMask(dropped, drawOf(site, elements).key, first, all.numel(),
                       all.data_ptr<bool>());
  return all;
}

at::Tensor Dropout::apply(DropoutSite site, const at::Tensor &x) const {
  const std::optional<ElementType> type = typeOfKernel(x.scalar_type());
  // The kernel takes elements in the order of their numbers. For other strides,
  // these operators give a result with the strides of `x`. The factor is a
  // tensor, because mul_ rounds a number to bfloat16 before it multiplies.
  if (!kernels || !type || !x.is_contiguous())
    return x.mul(mask(site, x.numel(), 0, x.sizes(), x.device()))
        .mul_(at::scalar_tensor(scale(), at::kDouble));
  at::Tensor result = at::empty_like(x);
  kernels->drop(*type, dropped, keyOf(site), firstOf(x.numel()), x.numel(),
                x.data_ptr(), scale(), result.data_ptr());
  return result;
}
