//===- Prefetch.h - Prefetching for long walks over ops ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_PREFETCH_H
#define CHIMERA_PASSES_PREFETCH_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/Compiler.h"

namespace chimera {

// A step has millions of ops, so a walk over them mostly waits for memory.
// These functions prefetch ops that the walk will reach soon. They change
// nothing.

/// Prefetches the cache lines `first` to `last`. A line has 64 bytes, and line
/// 0 begins at `address`.
inline void prefetchLines(const void *address, int first, int last) {
  for (int line = first; line <= last; ++line)
    LLVM_PREFETCH(static_cast<const char *>(address) + 64 * line, /*rw=*/1,
                  /*locality=*/3);
}

/// Prefetches an op. Its results lie before it in memory, its properties and
/// operands after it.
inline void prefetch(mlir::Operation *op) { prefetchLines(op, -1, 2); }

/// Prefetches the op that follows `op` in its block, and the memory after `op`.
/// Ops that were made one after another for one worker are adjacent in memory,
/// so the walk will soon reach the ops in this memory.
inline void prefetchNext(mlir::Operation &op) {
  prefetchLines(&op, 6, 10);
  if (mlir::Operation *next = op.getNextNode())
    prefetch(next);
}

/// Prefetches the ops that make the operands of `op`. Reads `op`, which should
/// be prefetched before.
inline void prefetchProducers(mlir::Operation *op) {
  for (mlir::OpOperand &operand : op->getOpOperands())
    prefetchLines(operand.get().getAsOpaquePointer(), 0, 1);
}

/// Prefetches the first user of each result of `op`. Reads `op`, which should
/// be prefetched before.
inline void prefetchUsers(mlir::Operation *op) {
  for (mlir::OpResult result : op->getResults())
    if (!result.use_empty())
      prefetchLines(&*result.use_begin(), -3, 0);
}

} // namespace chimera

#endif // CHIMERA_PASSES_PREFETCH_H
