//===- Posts.h - Where a worker posts and waits -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_POSTS_H
#define CHIMERA_PASSES_POSTS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Fails, with a diagnostic, where a message of the worker overtakes so many
/// others that it needs a larger window, and where postInWindow does.
mlir::LogicalResult checkWindow(WorkerOp worker, int32_t window);

/// Posts the receives of a projected worker so that on each channel at most
/// `window` of them are outstanding, more where messages that overtake others
/// need that, and awaits its sends late. Fails, with a diagnostic, where a
/// receive has not one wait in its section or posts are in groups already.
mlir::LogicalResult postInWindow(WorkerOp worker, int32_t window);

/// Makes groups of posts that stand side by side, so that none of them waits
/// for another: of those to and from the same other worker, where there are
/// both.
void groupCrossings(WorkerOp worker);

/// The same of sends and the receive behind them, whatever the workers.
void groupUpToReceives(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_POSTS_H
