//===- UpdateTensors.cpp - Numbers of an update ---------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/UpdateTensors.h"

#include "runtime/model/Clipping.h"

#include <ATen/ATen.h>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

at::ScalarType chimera::runtime::arithmeticOf(at::ScalarType type) {
  return type == at::kBFloat16 ? at::kFloat : type;
}

void chimera::runtime::addTo(Tensor weight, const Tensor &change,
                             double factor) {
  if (weight.scalar_type() == change.scalar_type())
    weight.add_(change, factor);
  else
    weight.copy_(weight.to(change.scalar_type()).add_(change, factor));
}

Tensor chimera::runtime::clippedScaleOf(const Tensor &squaredNorm, double scale,
                                        double limit) {
  return squaredNorm.sqrt()
      .mul_(scale)
      .add_(kClipEpsilon)
      .reciprocal_()
      .mul_(limit)
      .clamp_max_(1)
      .mul_(scale);
}

Tensor chimera::runtime::stopsOf(const Tensor &isBad, Tensor flag,
                                 uint64_t skipNonFinite) {
  const Tensor bad = isBad.to(at::kInt), halted = flag.bitwise_and(1);
  const Tensor isLast =
      flag.div(2, "trunc").ge(static_cast<int64_t>(skipNonFinite));
  flag.add_(bad.mul(1 - halted).mul_(2 - isLast.to(at::kInt)));
  return bad.bitwise_or(halted);
}
