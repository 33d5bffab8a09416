//===- Scale.h - From sums to means -----------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_SCALE_H
#define CHIMERA_RUNTIME_INTERPRETER_SCALE_H

#include "runtime/stage/Stage.h"

namespace chimera::runtime {

/// The total weight of the losses of micro-batches [first, first + count) of a
/// step, in all copies. This is count·W if each loss is a mean.
double totalWeight(const program::ProgramT &program, DataSource &data,
                   uint64_t step, uint32_t first, uint32_t count);

/// The factor for the gradients of these micro-batches: 1 / weight, or 0 if the
/// weight is 0. If the factor is 0, the update is left out, so weights and
/// optimizer state do not change. Every rank can compute the factor without
/// communication.
double gradientScale(const program::ProgramT &program, DataSource &data,
                     uint64_t step, uint32_t first, uint32_t count);

/// Writes to `loss` the sum of its `parts` shares, which are contiguous in
/// `shares`.
void addShares(ElementType type, ConstBytes shares, uint32_t parts, Bytes loss);

/// The loss of a step: the bits of the sum over all N·W micro-batches, and the
/// sum divided by their weight.
struct Loss {
  uint64_t sum;
  double mean;
  bool hasWeight = true; ///< false if the weight is 0; then the mean is 0
};

/// Reads a sum of losses whose total weight is `weight`. Throws
/// std::runtime_error if the weight is negative or not a number.
Loss readLoss(ConstBytes sum, ElementType type, double weight);

/// The mean loss of an evaluation. Throws std::runtime_error unless the weight
/// is positive.
double evaluationLoss(double sum, double weight);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SCALE_H
