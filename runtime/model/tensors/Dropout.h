//===- Dropout.h - Dropout masks of a layer ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_DROPOUT_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_DROPOUT_H

#include "runtime/model/Stage.h"
#include "runtime/model/StageKernels.h"
#include "runtime/random/Random.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace chimera::runtime {

/// Dropout in one layer. The masks depend on the seed, the layer, the site and
/// the samples, and not on the device, worker or schedule.
class Dropout {
public:
  /// The masks for `microBatch`, which may be a part of a micro-batch. If
  /// `microBatch` is empty, nothing is dropped. `kernels` is required on a GPU.
  /// If `step` is not null, it is memory of the GPU with the step, which the
  /// masks depend on in place of MicroBatch::step.
  Dropout(double probability, uint64_t seed, uint32_t layer,
          const std::optional<MicroBatch> &microBatch, StageKernels *kernels,
          const uint64_t *step = nullptr);

  bool isActive() const { return dropped > 0; }
  double probability() const { return dropped; }

  /// The `key` and `first` arguments of computeDropoutMask (Philox.h) for a
  /// tensor.
  struct Draw {
    uint64_t key;
    uint64_t first; ///< number of the tensor's first element
  };
  /// The arguments for a tensor that has `elements` elements in all samples of
  /// the micro-batch (or part) together.
  Draw drawOf(DropoutSite site, int64_t elements) const;

  /// The mask of the elements [begin, begin + n) of a tensor with `elements`
  /// elements, as in drawOf. The mask is on `device` and has shape `shape`,
  /// which has n elements.
  at::Tensor mask(DropoutSite site, int64_t elements, int64_t begin,
                  at::IntArrayRef shape, at::Device device) const;
  /// The factor by which kept elements are multiplied.
  double scale() const { return 1 / (1 - dropped); }

  /// The elements of `x` that are kept, times scale(), and zeros for the other
  /// ones. This is also the gradient of `x`, if `x` is the gradient of the
  /// result. So a backward needs no mask.
  at::Tensor apply(DropoutSite site, const at::Tensor &x) const;

private:
  /// The number of a tensor's first element, as in drawOf.
  uint64_t firstOf(int64_t elements) const;
  /// The key for the kernels.
  DropoutKey keyOf(DropoutSite site) const;

  double dropped;
  uint64_t seed;
  uint32_t layer;
  MicroBatch microBatch;
  StageKernels *kernels;
  const uint64_t *step;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_DROPOUT_H
