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

/// 1 / (n·W) for an update from `microBatches` n of each copy: its loss is the
/// mean over all of them.
double gradientScale(const program::ProgramT &program, uint32_t microBatches);

/// Writes the sum of the `parts` shares of a loss that lie one after the other
/// in `shares`.
void addShares(ElementType type, ConstBytes shares, uint32_t parts, Bytes loss);

/// The loss of a step: the bits of the sum over all N·W micro-batches, and
/// their mean as a number.
struct Loss {
  uint64_t sum;
  double mean;
};

/// Reads a sum of losses, of which there are `microBatches`.
Loss readLoss(ConstBytes sum, ElementType type, uint64_t microBatches);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_SCALE_H
