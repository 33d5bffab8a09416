//===- UpdateTensors.h - Numbers of an update -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates that are written with operators of LibTorch. Also: whether an update
// changes anything, and by how much gradients are clipped, if a device decides
// this and the host does not wait for the decision. These functions compute
// what Clipping.h and flagAfterNonFinite compute on the host.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_OPTIMIZER_UPDATETENSORS_H
#define CHIMERA_RUNTIME_MODEL_OPTIMIZER_UPDATETENSORS_H

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// The type in which weights of `type` are updated: float32 for bfloat16.
at::ScalarType arithmeticOf(at::ScalarType type);

/// Adds `factor` times `change`. The type of `change` is arithmeticOf the type
/// of `weight`. Rounds the sum once.
void addTo(at::Tensor weight, const at::Tensor &change, double factor);

/// Scalar tensors.
struct UpdateTensors {
  at::Tensor stops; ///< int32: not 0 if the update must change nothing;
                    ///< undefined if nothing can stop it
  at::Tensor scale; ///< float64: replaces Update::scale; undefined if
                    ///< gradients are not clipped
};

/// The scale of gradients with this squared norm (clippedScale).
at::Tensor clippedScaleOf(const at::Tensor &squaredNorm, double scale,
                          double limit);

/// Whether an update must change nothing (UpdateTensors::stops). `isBad` says
/// whether its gradients are not finite. Changes `flag`, the flag of
/// Stage::optimizerStep, like flagAfterNonFinite, unless it has halted.
at::Tensor stopsOf(const at::Tensor &isBad, at::Tensor flag,
                   uint64_t skipNonFinite);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_OPTIMIZER_UPDATETENSORS_H
