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

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_DROPOUT_H
#define CHIMERA_RUNTIME_STAGE_TORCH_DROPOUT_H

#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/Random.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace chimera::runtime {

class StageKernels;

/// Dropout in one layer. The masks depend on the seed, the layer, the site and
/// the samples, and not on the device, worker or schedule.
class Dropout {
public:
  /// The masks for a micro-batch or a part of one. Without `microBatch`,
  /// nothing is dropped. `kernels` is required on a GPU.
  Dropout(double probability, uint64_t seed, uint32_t layer,
          const std::optional<MicroBatch> &microBatch, StageKernels *kernels);

  bool acts() const { return dropped > 0; }
  double probability() const { return dropped; }

  /// The random numbers that decide which elements are kept (Philox.h).
  struct Draw {
    uint64_t key;
    uint64_t first; ///< number of the first element
  };
  /// The random numbers for a tensor that has `elements` elements in all
  /// samples of the micro-batch (or part) together.
  Draw drawOf(DropoutSite site, int64_t elements) const;

  /// The mask of elements [begin, begin + n) of such a tensor, on `device`. n
  /// is the number of elements of `shape`.
  at::Tensor kept(DropoutSite site, int64_t elements, int64_t begin,
                  at::IntArrayRef shape, at::Device device) const;
  /// Kept elements are multiplied by this.
  double scale() const { return 1 / (1 - dropped); }

  /// `x` with dropped elements set to zero and the others scaled.
  at::Tensor operator()(const at::Tensor &x, DropoutSite site) const;

private:
  double dropped;
  uint64_t seed;
  uint32_t layer;
  MicroBatch microBatch;
  StageKernels *kernels;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_DROPOUT_H
