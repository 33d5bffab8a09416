//===- LayerTable.h - Costs of layers for a micro-batch size ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_LAYERTABLE_H
#define CHIMERA_COMPILER_COST_LAYERTABLE_H

#include "runtime/program/Layers.h"

namespace chimera::cost {

/// Costs of a layer for one micro-batch.
struct LayerCost {
  /// Times in ticks (LayerTable). `update` is the update of the layer's
  /// weights.
  int64_t forward, backward, inputGradient, weightGradient, recompute, update;
  int64_t stash, weightStash; ///< bytes
  int64_t boundary;           ///< bytes of the activations for the next layer
  int64_t parameters;         ///< number of parameters
  int64_t stateElements;      ///< elements of the optimizer state
};

/// Costs of a model's layers for one micro-batch size. A tick is a nanosecond
/// if the machine is known, else a floating-point operation.
struct LayerTable {
  std::vector<LayerCost> layers;
  /// Parameters of the last layer that the first layer has too (a tied
  /// embedding). A stage with both layers stores them once.
  int64_t tiedParameters = 0;
  /// The elements of the optimizer state of these parameters.
  int64_t tiedStateElements = 0;
  program::Types types;

  int32_t size() const { return static_cast<int32_t>(layers.size()); }
};

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_LAYERTABLE_H
