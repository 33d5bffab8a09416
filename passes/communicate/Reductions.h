//===- Reductions.h - Contributions to all-reduces --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contributions of each worker to the all-reduces of a section, and the
// last action that adds to them. An all-reduce starts after this action.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_COMMUNICATE_REDUCTIONS_H
#define CHIMERA_PASSES_COMMUNICATE_REDUCTIONS_H

#include "dialect/Chimera.h"

#include <vector>

namespace chimera {

/// The part of one worker in one all-reduce.
struct ReductionPart {
  uint32_t worker;
  llvm::SmallVector<unsigned> operands; ///< indices of its contributions
  mlir::Operation *last;                ///< last action that adds to one of
                                        ///< them; null for squared norms
  llvm::SmallVector<AllReduceStartOp> starts; ///< one for each bucket
};

/// An all-reduce and the part of each worker.
struct Reduction {
  AllReduceOp op;
  llvm::SmallVector<ReductionPart, 2> parts;
  /// One entry for each contribution of one copy, in the order in which they
  /// are added: the worker that makes the contribution, and its key. The key is
  /// a pipeline (gradients, squared norms) or a micro-batch (losses).
  llvm::SmallVector<int32_t> workers, keys;
  mlir::Operation *last; ///< last action of all parts; null for squared norms,
                         ///< to which no action adds
};

/// The all-reduces, which must be adjacent in their block, sorted by the
/// position of the last action that adds to each. So all workers use the same
/// order. The losses, which are small, come before the gradients of the same
/// action. If `needsOrder` is false, the list is not sorted, and any of the
/// actions may be the `last` one. Emits an error if a contribution has no
/// worker, or if the sum of the losses is used.
mlir::FailureOr<std::vector<Reduction>>
reductionsOf(llvm::ArrayRef<AllReduceOp> reduces, bool needsOrder);

} // namespace chimera

#endif // CHIMERA_PASSES_COMMUNICATE_REDUCTIONS_H
