//===- LoopCarried.h - Loop-carried values of sections ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is the body of a loop. Its loop-carried values are the values that it
// yields and that the next step takes as arguments. With a flush, they are the
// weights and the optimizer state of every stage replica. Without a flush, the
// step has a prologue before it and an epilogue after it, and the loop-carried
// values also include older weights and the values of micro-batches in flight.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_LOOPCARRIED_H
#define CHIMERA_DIALECT_LOOPCARRIED_H

#include "dialect/Chimera.h"

namespace chimera {

/// The positions of one stage replica's loop-carried values. In this order:
/// - `versions` weights, oldest first;
/// - the optimizer state;
/// - `stashes` stashes of micro-batches in flight, oldest first;
/// - `activations` activations. The last is the one that the previous stage has
///   sent. If the stage is recomputed, the input activations of the forwards in
///   flight, oldest first, replace the stashes and precede it.
struct LoopCarried {
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

/// The replicas whose loop-carried values have `types`, one replica after
/// another. None if `types` are not such a list.
std::optional<llvm::SmallVector<LoopCarried>>
loopCarriedOf(mlir::TypeRange types);

enum class SectionKind { Prologue, Step, Epilogue };

/// Checks one section. Fails, with a diagnostic on `op`, unless
/// - `block` ends with a yield;
/// - its arguments, and the values that it yields, are loop-carried values of
///   replicas;
/// - a prologue takes nothing but weights and optimizer state, and an epilogue
///   yields nothing else;
/// - a step yields the types of its arguments.
mlir::LogicalResult verifySection(mlir::Operation *op, mlir::Block &block,
                                  SectionKind section);

/// Checks a step alone, or a prologue, a step and an epilogue together. Fails,
/// with a diagnostic on `op`, if a section does not take the types that the
/// previous one yields, or if a step alone takes anything but weights and
/// optimizer state. Requires that verifySection succeeds for each section.
mlir::LogicalResult verifyLoopCarried(mlir::Operation *op,
                                      llvm::ArrayRef<mlir::Block *> sections);

} // namespace chimera

#endif // CHIMERA_DIALECT_LOOPCARRIED_H
