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

/// What the losses of micro-batches [first, first + count) of a step weigh, of
/// all copies: count·W where each is a mean.
double totalWeight(const program::ProgramT &program, DataSource &data,
                   uint64_t step, uint32_t first, uint32_t count);

/// By what the gradients of these are multiplied: one by their weight, or 0 if
/// nothing counts in them. An update by 0 is left out: weights and optimizer
/// state stay as they are. Every rank knows that without asking.
double gradientScale(const program::ProgramT &program, DataSource &data,
                     uint64_t step, uint32_t first, uint32_t count);

/// Writes the sum of the `parts` shares of a loss that lie one after the other
/// in `shares`.
void addShares(ElementType type, ConstBytes shares, uint32_t parts, Bytes loss);

/// The loss of a step: the bits of the sum over all N·W micro-batches, and that
/// by their weight as a number.
struct Loss {
  uint64_t sum;
  double mean;
  bool counts = true; ///< whether anything does in the step; else the mean is 0
};

/// Reads a sum of losses, which weigh as much together. Throws
/// std::runtime_error if that is less than nothing, or no number.
Loss readLoss(ConstBytes sum, ElementType type, double weight);

/// The mean of the losses of an evaluation. Throws std::runtime_error likewise.
double meanOf(double sum, double weight);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SCALE_H
