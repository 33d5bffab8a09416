//===- LoopCarried.h - Loop-carried values of sections ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is the body of a loop. The step yields its loop-carried values, and
// the next step has them as arguments. With a flush, they are the weights and
// the optimizer state of every stage replica. Without a flush, the step has a
// prologue before it and an epilogue after it. The loop-carried values then
// also include older weights and the values of micro-batches in flight.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_DIALECT_LOOPCARRIED_H
#define CHIMERA_DIALECT_LOOPCARRIED_H

#include "dialect/Chimera.h"

namespace chimera {

/// The positions of one stage replica's loop-carried values in the list of all
/// loop-carried values. They are in this order:
/// - `versions` weights, oldest first;
/// - the optimizer state;
/// - `stashes` stashes of micro-batches in flight, oldest first;
/// - `activations` activations. The last one is the activation that the
///   previous stage has sent. If the stage is recomputed, there are no stashes.
///   The input activations of the forwards in flight, oldest first, then
///   precede the last activation.
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

/// Reads `types` as the types of the loop-carried values of one replica after
/// another. None if `types` are not such a list.
std::optional<llvm::SmallVector<LoopCarried>>
loopCarriedOf(mlir::TypeRange types);

enum class SectionKind { Prologue, Step, Epilogue };

/// Checks one section. Fails, with a diagnostic on `op`, unless
/// - `block` ends with a yield;
/// - the arguments of `block`, and the values that it yields, are loop-carried
///   values of replicas;
/// - the arguments of a prologue, and the values that an epilogue yields, are
///   only weights and optimizer state;
/// - a step yields values of the types of its arguments.
mlir::LogicalResult verifySection(mlir::Operation *op, mlir::Block &block,
                                  SectionKind section);

/// Checks a step alone, or a prologue, a step and an epilogue together. Fails,
/// with a diagnostic on `op`, if the arguments of a section do not have the
/// types that the previous section yields. (The prologue follows the epilogue.)
/// Also fails if a step alone has other arguments than weights and optimizer
/// state. Requires that verifySection succeeds for each section.
mlir::LogicalResult verifyLoopCarried(mlir::Operation *op,
                                      llvm::ArrayRef<mlir::Block *> sections);

} // namespace chimera

#endif // CHIMERA_DIALECT_LOOPCARRIED_H
