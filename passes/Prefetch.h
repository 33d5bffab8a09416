//===- Prefetch.h - Long walks over ops -------------------------*- C++ -*-===//
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

// A step has millions of ops, so that walks over them mostly wait for memory.
// These let it come while other ops are worked on; they change nothing.

/// Fetches the lines of memory from `first` to `last`, counted from `address`.
inline void prefetchLines(const void *address, int first, int last) {
  for (int line = first; line <= last; ++line)
    LLVM_PREFETCH(static_cast<const char *>(address) + 64 * line, /*rw=*/1,
                  /*locality=*/3);
}

/// Results lie before the op, properties and operands behind it.
inline void prefetch(mlir::Operation *op) { prefetchLines(op, -1, 2); }

/// The op behind `op`, and what lies behind it in memory: ops that are made one
/// after another, for one worker, are met in that order, if not at once.
inline void prefetchNext(mlir::Operation &op) {
  prefetchLines(&op, 6, 10);
  if (mlir::Operation *next = op.getNextNode())
    prefetch(next);
}

/// The ops that make what `op` uses. Reads `op`, best when it has been fetched.
inline void prefetchProducers(mlir::Operation *op) {
  for (mlir::OpOperand &operand : op->getOpOperands())
    prefetchLines(operand.get().getAsOpaquePointer(), 0, 1);
}

/// The ops that use what `op` makes first. Reads `op`, best when it has been
/// fetched.
inline void prefetchUsers(mlir::Operation *op) {
  for (mlir::OpResult result : op->getResults())
    if (!result.use_empty())
      prefetchLines(&*result.use_begin(), -3, 0);
}

} // namespace chimera

#endif // CHIMERA_PASSES_PREFETCH_H
