//===- DataSource.h - The data of micro-batches -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between the interpreter and the data of a run. A `load`
// instruction asks for the inputs or the labels of one micro-batch.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_DATASOURCE_H
#define CHIMERA_RUNTIME_DATA_DATASOURCE_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Program.h"

#include <cstdint>

namespace chimera::runtime {

/// The micro-batch that an action works on, or one of its equal parts. Random
/// numbers may depend on these fields, the seed and the layer. They must not
/// depend on worker, pipeline or schedule. A sample gets the same random
/// numbers in a part as in the whole micro-batch.
struct MicroBatch {
  uint64_t step; ///< training step, from 0
  /// The number among the micro-batches of all data-parallel copies in a step:
  /// copy * N + micro-batch, where each copy has N micro-batches.
  uint64_t index;
  uint32_t part = 0;  ///< number of the part, from 0
  uint32_t parts = 1; ///< number of parts of the micro-batch

  bool operator==(const MicroBatch &) const = default;
};

/// The source of the inputs and labels that `load` instructions read.
class DataSource {
public:
  virtual ~DataSource() = default;
  /// Fills `output` with the inputs or labels (`kind`) of a micro-batch or of a
  /// part of it. The result depends only on the arguments and the seed. Several
  /// threads may call this at the same time.
  virtual void load(program::ValueKind kind, MicroBatch microBatch,
                    Bytes output) = 0;
  /// The weight of a whole micro-batch's loss. If the loss is a mean, the
  /// weight is 1. If the loss is a sum, the weight is the number of labels that
  /// contribute to it. The loss of a step is the sum of the micro-batches'
  /// losses divided by the sum of their weights. The weight depends only on the
  /// micro-batch and the seed, so each rank computes all weights without
  /// communication. Several threads may call this at the same time.
  virtual double lossWeight(MicroBatch) { return 1; }
  /// Whether lossWeight counts labels. Stages whose losses are sums require
  /// this (Stage::needsLossWeights).
  virtual bool weighsLosses() const { return false; }
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_DATASOURCE_H
