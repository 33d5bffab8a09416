//===- Operands.h - What the ops of a schedule take -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_OPERANDS_H
#define CHIMERA_PASSES_OPERANDS_H

#include "passes/Bridge.h"

namespace chimera {

/// Checks the operands of actions, of the sums of losses and, with a flush, of
/// updates and of the step's yield: each must be the value that the labels of
/// its op ask for. No two actions add to one sum, no two updates of a replica
/// have one flush, and a step has one sum of its losses. Where steps overlap,
/// weights, stashes and activations are for verifySections to check, since
/// sections hand them on. Fails, and reports at the op that takes a wrong
/// value, up to twenty and how many more. Which actions there are is the
/// schedule library's to check. Linear in the number of ops.
mlir::LogicalResult verifyOperands(const schedule::Problem &problem,
                                   const Layout &layout,
                                   llvm::ArrayRef<SectionOp> sections);

} // namespace chimera

#endif // CHIMERA_PASSES_OPERANDS_H
