//===- Allocator.h - A place for every value --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_ALLOCATOR_H
#define CHIMERA_PASSES_ALLOCATOR_H

#include "dialect/Chimera.h"

namespace chimera {

/// What a worker takes of its device's memory, which its cap is held against: a
/// runtime allocates the whole arena, and stashes as they come and go.
struct Allocated {
  int64_t arena;
  int64_t stashes;     ///< the most bytes of them at a time
  int64_t withoutGaps; ///< `bytes()`, if no gap were left between values
  int64_t bytes() const { return arena + stashes; }
};

/// Gives the values of a projected worker their buffers and says what it holds
/// at most, as `chimera-allocate-worker` does. Fails, with a diagnostic, as
/// that pass does.
mlir::FailureOr<Allocated> allocate(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_ALLOCATOR_H
