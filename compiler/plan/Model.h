//===- Model.h - What the layers of a model take ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model is a row of layers. What they take follows from an architecture or a
// package (runtime/program/Layers.h), or each layer states it: then the model
// is bare, and can be planned and simulated but not trained.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_MODEL_H
#define CHIMERA_COMPILER_PLAN_MODEL_H

#include "compiler/plan/Machine.h"
#include "runtime/program/Layers.h"

#include <memory>

namespace chimera::plan {

/// A layer that states what it takes. All but the parameters are of one sample.
struct BareLayer {
  int64_t forwardFlops;
  int64_t inputGradientFlops;
  int64_t weightGradientFlops;
  int64_t parameters;
  int64_t stashBytes;
  int64_t weightStashBytes;
  int64_t boundaryBytes; ///< of what it gives to the next layer
};

/// What a layer takes for one micro-batch.
struct LayerCost {
  /// Ticks; of the update of its weights too.
  int64_t forward, backward, inputGradient, weightGradient, recompute, update;
  int64_t stash, weightStash; ///< bytes
  int64_t boundary;           ///< bytes of what it gives to the next layer
  int64_t parameters;         ///< how many
};

/// What the layers of a model take for a micro-batch of one size. A tick is a
/// nanosecond on a machine, else a floating-point operation.
struct LayerTable {
  std::vector<LayerCost> layers;
  /// Of the parameters of the last layer, those that are the first layer's too:
  /// a stage that has both layers holds them once.
  int64_t tiedParameters = 0;
  program::Types types;
  std::string optimizer;

  int32_t size() const { return static_cast<int32_t>(layers.size()); }
};

/// A model and how its values are kept.
class Model {
public:
  /// Requires that checkModel finds nothing wrong with `model`.
  Model(std::shared_ptr<const program::ModelT> model, program::Types types,
        std::string optimizer);
  /// Of one layer at least, none of whose numbers is negative.
  Model(std::vector<BareLayer> layers, program::Types types,
        std::string optimizer);

  int32_t layerCount() const;
  /// Null for a bare model.
  const program::ModelT *trainable() const { return model.get(); }
  /// Tokens of a sample, 0 where the model does not say.
  int64_t tokens() const;

  /// The numbers of samples that a micro-batch can have, ascending: those that
  /// a package was exported for. Empty if any number is possible.
  std::vector<int64_t> microBatchSizes() const;
  /// The fewest samples that a micro-batch can have.
  int64_t smallestMicroBatch() const;

  /// Empty if the model can be given micro-batches of so many samples, each in
  /// so many parts, on the machine, else what is wrong with that.
  std::string check(int64_t microBatchSize, int64_t parts,
                    const Machine *machine) const;

  /// For micro-batches in so many parts. Times are those of `machine`, by what
  /// runs on it measured where there are profiles (MeasuredLayers.h);
  /// operations where it is null. Requires that `check` finds nothing wrong.
  LayerTable table(int64_t microBatchSize, int64_t parts,
                   const Machine *machine) const;

private:
  /// Empty if what was measured on the machine is of this model, else what is
  /// wrong with it.
  std::string checkProfiles(const Machine &machine) const;
  /// With operations for times.
  LayerTable operations(int64_t microBatchSize, int64_t parts) const;

  std::shared_ptr<const program::ModelT> model;
  std::vector<BareLayer> bare;
  program::Types types;
  std::string optimizer;
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_MODEL_H
