//===- Allocator.h - Buffers for the values of a worker ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATOR_H
#define CHIMERA_PASSES_ALLOCATOR_H

#include "dialect/Chimera.h"

namespace chimera {

/// The memory that a worker uses on its device, which is compared with its cap.
/// A runtime allocates the arena as a whole, and each stash when it is made.
struct Allocated {
  int64_t arena;
  int64_t stashes;     ///< the most bytes of stashes at a time
  int64_t withoutGaps; ///< `bytes()` if there were no gaps between values
  int64_t bytes() const { return arena + stashes; }
};

/// Assigns buffers to the values of a projected worker and returns the memory
/// that it uses, like `chimera-allocate-worker`. Fails with a diagnostic, like
/// that pass.
mlir::FailureOr<Allocated> allocate(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATOR_H
