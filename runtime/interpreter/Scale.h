//===- Scale.h - From sums to means -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_SCALE_H
#define CHIMERA_RUNTIME_INTERPRETER_SCALE_H

#include "runtime/model/Stage.h"

#include <optional>

namespace chimera::runtime {

/// The sum of the weights (DataSource::lossWeight) of micro-batches [first,
/// first + count) of a step, over all W data-parallel copies. The mean loss is
/// the sum of the losses divided by this weight. If each loss is a mean, every
/// weight is 1 and the result is count·W.
double totalWeight(const program::ProgramT &program, DataSource &data,
                   uint64_t step, uint32_t first, uint32_t count);

/// The factor for the gradient sum of these micro-batches: 1 / totalWeight, or
/// 0 if the total weight is 0. If the factor is 0, the update is left out:
/// weights and optimizer state do not change. Every rank can compute the factor
/// without communication.
double gradientScale(const program::ProgramT &program, DataSource &data,
                     uint64_t step, uint32_t first, uint32_t count);

/// Adds the losses of the parts of a micro-batch and writes the sum to `loss`.
/// The losses are contiguous in `shares`. `parts` is their number.
void addLossesOfParts(ElementType type, ConstBytes shares, uint32_t parts,
                      Bytes loss);

/// The loss of a step. It covers the N micro-batches of each of the W
/// data-parallel copies. `sum` has the bits of the sum of their losses, in the
/// type of the loss. `mean` is the sum divided by totalWeight.
struct Loss {
  uint64_t sum;
  double mean;
  bool hasWeight = true; ///< if false, the total weight and the mean are 0
  /// The norm of the step's gradients of all stages, before clipping. None if
  /// the program does not clip.
  std::optional<double> gradientNorm = {};
};

/// Converts a sum of losses. `weight` is the total weight of these losses.
/// Throws std::runtime_error if the weight is negative or not a number.
Loss readLoss(ConstBytes sum, ElementType type, double weight);

/// The mean loss of an evaluation: sum / weight. Throws std::runtime_error
/// unless the weight is positive.
double evaluationLoss(double sum, double weight);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SCALE_H
