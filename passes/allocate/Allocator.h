//===- Allocator.h - Buffers for the values of a worker ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATE_ALLOCATOR_H
#define CHIMERA_PASSES_ALLOCATE_ALLOCATOR_H

#include "dialect/Chimera.h"

namespace chimera {

/// The size of the memory that a worker uses on its device. It is compared with
/// the memory cap. A runtime allocates the arena as a whole, and each stash
/// when it is made.
struct Allocated {
  int64_t arena;
  int64_t stashes;     ///< largest number of bytes of live stashes
  int64_t withoutGaps; ///< value of `bytes()` without gaps between values
  int64_t bytes() const { return arena + stashes; }
};

/// Assigns buffers to the values of a projected worker and returns the memory
/// that the worker uses, like the pass `chimera-allocate-worker`. Fails with a
/// diagnostic if the pass would fail.
mlir::FailureOr<Allocated> allocate(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATE_ALLOCATOR_H
