//===- Dropout.h - Which elements a layer drops -----------------*- C++ -*-===//
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

/// Dropout in one layer, keyed by what it is for and not by where it runs.
class Dropout {
public:
  /// In that micro-batch or part of one; without one nothing is dropped.
  /// `kernels` are a GPU's.
  Dropout(double probability, uint64_t seed, uint32_t layer,
          const std::optional<MicroBatch> &microBatch, StageKernels *kernels);

  bool acts() const { return dropped > 0; }
  double probability() const { return dropped; }

  /// What decides which elements are kept (Philox.h).
  struct Draw {
    uint64_t key;
    uint64_t first; ///< number of the first element
  };
  /// For a tensor of `elements` elements, those of all samples of the
  /// micro-batch or part.
  Draw drawOf(DropoutSite site, int64_t elements) const;

  /// Whether elements of such a tensor are kept, from the `begin`-th on: as
  /// many as `shape` has, on `device`.
  at::Tensor kept(DropoutSite site, int64_t elements, int64_t begin,
                  at::IntArrayRef shape, at::Device device) const;
  /// What is kept is multiplied by it.
  double scale() const { return 1 / (1 - dropped); }

  /// `x` without what is dropped, the rest scaled.
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
