//===- VerifyOperands.h - Checks of the operands of a step ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_VERIFYOPERANDS_H
#define CHIMERA_PASSES_VERIFYOPERANDS_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks the operands of actions, of the sums of losses and, in a step with a
/// flush, of updates and of the yield. Each operand must be the value that the
/// label of the op (its pipeline, stage, micro-batches and part) asks for. No
/// two actions may add to one sum, a flush updates each replica once, and a
/// step has one sum of its losses. If steps overlap, weights, stashes and
/// activations may be loop-carried. Then verifySections checks these values
/// instead.
///
/// Fails, and reports up to twenty wrong operands and the number of the others,
/// each on the op that uses the operand. Does not check which actions exist:
/// the schedule library does. Takes time linear in the number of ops.
mlir::LogicalResult verifyOperands(const schedule::Problem &problem,
                                   const Layout &layout,
                                   llvm::ArrayRef<SectionOp> sections);

} // namespace chimera

#endif // CHIMERA_PASSES_VERIFYOPERANDS_H
