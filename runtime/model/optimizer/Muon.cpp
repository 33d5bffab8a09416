//===- Muon.cpp - The update of a matrix by Muon --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/Muon.h"

#include "runtime/program/Optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

Tensor chimera::runtime::orthogonalized(const Tensor &matrix,
                                        at::ScalarType type) {
  // An iteration replaces each singular value s by a·s + b·s³ + c·s⁵.
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  // The least norm by which a matrix is divided.
  constexpr double kLeastNorm = 1e-7;
  const bool isTall = matrix.size(0) > matrix.size(1);
  Tensor x = (isTall ? matrix.t() : matrix).to(type);
  // Now no singular value is above 1.
  x = x.div(at::linalg_vector_norm(x).clamp_min(kLeastNorm));
  for (int i = 0; i < program::kMuonIterations; ++i) {
    const Tensor gram = x.mm(x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA);
  }
  return isTall ? x.t() : x;
}

void chimera::runtime::muonStep(const program::OptimizerT &optimizer,
                                const Update &update,
                                const UpdateTensors &tensors, bool decay,
                                at::ScalarType type, const Tensor &gradientSum,
                                Tensor weight, Tensor momentumBuffer) {
  const at::ScalarType computed = arithmeticOf(weight.scalar_type());
  const Tensor sum = gradientSum.to(computed);
  const Tensor gradient = tensors.scale.defined()
                              ? sum.mul(tensors.scale.to(computed))
                              : sum.mul(update.scale);
  const Tensor buffer =
      momentumBuffer.to(computed).lerp(gradient, 1 - optimizer.momentum);
  Tensor change = orthogonalized(
      optimizer.nesterov ? gradient.lerp(buffer, optimizer.momentum) : buffer,
      type);
  change = change.to(computed);
  change.mul_(0.2 * std::sqrt(std::max(weight.size(0), weight.size(1))));
  if (decay && optimizer.weight_decay != 0)
    change.add_(weight, optimizer.weight_decay);
  if (tensors.stops.defined()) {
    const Tensor stops = tensors.stops.to(at::kBool);
    momentumBuffer.copy_(at::where(stops, momentumBuffer, buffer));
    change.masked_fill_(stops, 0);
  } else {
    momentumBuffer.copy_(buffer);
  }
  addTo(weight, change, -update.learningRate);
}
