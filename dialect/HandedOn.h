//===- HandedOn.h - What sections hand on -----------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is a loop body: what one leaves, the next takes. With a flush that is
// the weights and the optimizer state of every stage replica. Without one, a
// prologue and an epilogue stand around the step, and older weights and what is
// in flight are handed on too.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_HANDEDON_H
#define CHIMERA_DIALECT_HANDEDON_H

#include "dialect/Chimera.h"

namespace chimera {

/// What one stage replica hands on, by position: `versions` weights, oldest
/// first, the optimizer state, then of the micro-batches in flight, oldest
/// first, the stashes or, where they are recomputed, the activations that their
/// forwards took, and last the activation that the stage before has sent.
struct HandedOn {
  unsigned first = 0;
  unsigned versions = 0;
  unsigned stashes = 0;
  unsigned activations = 0;

  unsigned newestWeights() const { return first + versions - 1; }
  unsigned state() const { return first + versions; }
  unsigned firstStash() const { return state() + 1; }
  unsigned firstActivation() const { return firstStash() + stashes; }
  unsigned end() const { return firstActivation() + activations; }
};

/// Reads `types` as what replicas hand on, one after another. None where they
/// are anything else.
std::optional<llvm::SmallVector<HandedOn>> handedOnBy(mlir::TypeRange types);

enum class SectionKind { Prologue, Step, Epilogue };

/// What holds for a section by itself: `block` ends with a yield, takes and
/// yields what replicas hand on, a prologue begins and an epilogue ends with
/// weights and optimizer state alone, and a step yields what it takes.
mlir::LogicalResult verifySection(mlir::Operation *op, mlir::Block &block,
                                  SectionKind section);

/// What holds for a step alone, or for prologue, step and epilogue: each takes
/// what the one before yields, and a step alone weights and optimizer state
/// only. Reports on `op`. Requires that verifySection holds for each.
mlir::LogicalResult verifyHandedOn(mlir::Operation *op,
                                   llvm::ArrayRef<mlir::Block *> sections);

} // namespace chimera

#endif // CHIMERA_DIALECT_HANDEDON_H
