//===- Model.h - Costs of the layers of a model -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model is a row of layers. Their costs follow from its package
// (runtime/program/Layers.h). In a bare model each layer states its costs
// instead. A bare model can be planned and simulated, but not trained.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_MODEL_H
#define CHIMERA_COMPILER_COST_MODEL_H

#include "compiler/cost/LayerTable.h"
#include "compiler/cost/Machine.h"
#include "runtime/program/Layers.h"

#include <memory>

namespace chimera::cost {

/// A layer with given costs, per sample except for the parameters.
struct BareLayer {
  int64_t forwardFlops;
  int64_t inputGradientFlops;
  int64_t weightGradientFlops;
  int64_t parameters;
  int64_t stashBytes;
  int64_t weightStashBytes;
  int64_t boundaryBytes; ///< of the activations for the next layer
};

/// A model with the types of its values and its optimizer.
class Model {
public:
  /// A model that can be trained. Requires that program::checkPackage finds no
  /// error in `model`.
  Model(std::shared_ptr<const program::PackageT> model, program::Types types,
        program::OptimizerT optimizer);
  /// A bare model. Requires at least one layer, and no negative numbers.
  Model(std::vector<BareLayer> layers, program::Types types,
        program::OptimizerT optimizer);

  int32_t layerCount() const;
  /// Null for a bare model.
  const program::PackageT *trainable() const { return model.get(); }
  /// The number of tokens of a sample, or 0 if the model does not state it.
  int64_t tokens() const;

  /// Returns an error if the model cannot run micro-batches of `microBatchSize`
  /// samples, with backwards in `parts` parts, on the machine (null: on any
  /// machine). Otherwise returns an empty text.
  std::string check(int64_t microBatchSize, int64_t parts,
                    const Machine *machine) const;

  /// Costs of the layers for micro-batches of `microBatchSize` samples, with
  /// backwards in `parts` parts. Times come from the machine's profiles
  /// (MeasuredLayers.h) or, without profiles, from its speed. If `machine` is
  /// null, times are counts of operations. Requires that `check` returns no
  /// error.
  LayerTable table(int64_t microBatchSize, int64_t parts,
                   const Machine *machine) const;

private:
  /// Returns an error if a profile of the machine is not of this model, else an
  /// empty text.
  std::string checkProfiles(const Machine &machine) const;
  /// The table with counts of operations in place of times.
  LayerTable operations(int64_t microBatchSize, int64_t parts) const;

  std::shared_ptr<const program::PackageT> model;
  std::vector<BareLayer> bare;
  program::Types types;
  program::OptimizerT optimizer;
};

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_MODEL_H
