//===- Posts.h - Placement of a worker's posts and waits --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_POSTS_H
#define CHIMERA_PASSES_POSTS_H

#include "dialect/Chimera.h"

namespace chimera {

/// Fails with a diagnostic if a message of the worker overtakes so many others
/// that it needs a larger window, or if postInWindow would fail.
mlir::LogicalResult checkWindow(WorkerOp worker, int32_t window);

/// Moves the receives of a projected worker so that at most `window` of them
/// are outstanding on each channel, or more if a message that overtakes others
/// needs it. Moves the waits for sends later. Fails with a diagnostic if a
/// receive does not have exactly one wait in its section, or if posts are in
/// groups already.
mlir::LogicalResult postInWindow(WorkerOp worker, int32_t window);

/// If adjacent posts of a worker are to and from one other worker, and both
/// sends and receives are among them, makes them a group. Then none of them
/// waits for another.
void groupCrossings(WorkerOp worker);

/// Makes a group of adjacent sends and the first receive after them. The posts
/// may be to and from several workers.
void groupUpToReceives(WorkerOp worker);

} // namespace chimera

#endif // CHIMERA_PASSES_POSTS_H
